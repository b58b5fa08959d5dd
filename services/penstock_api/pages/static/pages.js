// What every page runs. Each module finds its own elements; a page that has none of them does nothing.
import { watch } from "./live.js";
import { listen } from "./actions.js";
import { follow } from "./logs.js";
import { steer } from "./keys.js";
import { age, showTimes } from "./times.js";
import { showGraphs } from "./graphs.js";
import { offerCopies } from "./copy.js";

showTimes();
showGraphs();
offerCopies();
listen();
follow();
steer();
watch();
age();
