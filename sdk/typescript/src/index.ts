export { Client, ExecutionFailed, type StartOptions } from "./client.js";
export { Defer, NonRetryable, Refused, Retry } from "./errors.js";
export type { Json } from "./protocol.js";
export type { Run } from "./run.js";
export { VERSION, Worker, action, type Action, type WorkerOptions } from "./worker.js";
