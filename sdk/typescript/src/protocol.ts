/** The messages of version 1 of the worker protocol. docs/workers-in-any-language.md describes each of them. */

/** A value of JSON. An integer beyond `Number.MAX_SAFE_INTEGER` is a bigint. */
export type Json = null | boolean | number | bigint | string | Json[] | { [name: string]: Json };

export interface Welcome {
  protocol: number;
  worker: string;
  session: string;
  beat_every: number;
  lost_after: number;
  wait_at_most: number;
  batch_at_most: number;
  result_bytes: number;
  differences?: { action: string; part: "parameters" | "result"; text: string }[];
}

export interface TakenAttempt {
  execution: string;
  attempt: number;
  max_attempts: number;
  action: string;
  tenant: string;
  namespace: string;
  parameters: { [name: string]: Json };
  context: { [name: string]: Json };
  state: Json;
  answers: Json[];
  timeout: number | null;
  workflow: string | null;
  root: string;
  task: string | null;
  waited: number;
  trace: { [name: string]: string };
}

export interface Taken {
  attempts: TakenAttempt[];
  drain: boolean;
}

export interface BeatAnswer {
  lost: string[];
  cancel: string[];
  drain: boolean;
}

export interface ActionError {
  type: string;
  message: string;
  traceback?: string;
  kinds?: string[];
  members?: string[][];
  retryable?: boolean;
  retry_after?: number;
}

export type End =
  | { outcome: "completed"; result: unknown }
  | { outcome: "failed"; error: ActionError }
  | { outcome: "timed_out" | "cancelled" }
  | { outcome: "deferred"; delay?: number; until?: string; state: unknown }
  | { outcome: "handed_back"; started: boolean };

export interface Line {
  seq: number;
  stream: "stdout" | "stderr" | "log";
  line: string;
}

export interface Report {
  seq: number;
  done: number;
  text: string;
}
