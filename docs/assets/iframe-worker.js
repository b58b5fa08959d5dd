// Browsers start no worker from a file. Where these pages are read from a folder, without a server, the search runs in a frame of
// the page in place of a worker. The theme looks for it by this name.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    #waiting = [];
    #inside;

    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) => setTimeout(() => this.dispatchEvent(new MessageEvent("message", { data })));
      const script = inside.document.createElement("script");
      script.src = address;
      script.addEventListener("load", () => {
        this.#inside = inside;
        for (const data of this.#waiting.splice(0)) this.postMessage(data);
      });
      inside.document.body.append(script);
    }

    postMessage(data) {
      if (this.#inside) this.#inside.dispatchEvent(new this.#inside.MessageEvent("message", { data }));
      else this.#waiting.push(data);
    }
  };
  window.Worker = window.IFrameWorker;
}
