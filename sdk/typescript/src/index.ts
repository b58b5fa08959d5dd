export {
  Client,
  ExecutionFailed,
  type ActionTypes,
  type AnyActions,
  type Ref,
  type SentSignal,
  type StartArguments,
  type StartOptions,
} from "./client.js";
export { Defer, MayHaveHappened, NonRetryable, OutputDropped, Refused, Retry, SchemaDiffers } from "./errors.js";
export { NotStorable } from "./json.js";
export type { Json } from "./protocol.js";
export type { Run } from "./run.js";
export { t, type Keywords, type ObjectOf, type Optional, type Schema, type ValueOf } from "./schemas.js";
export { VERSION, Worker, action, actionsOf, type Action, type WorkerOptions } from "./worker.js";
