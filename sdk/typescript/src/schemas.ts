import type { Json } from "./protocol.js";

declare const VALUE: unique symbol;

/** A JSON Schema whose values have the type T. */
export type Schema<T> = { readonly [word: string]: Json } & { readonly [VALUE]?: T };
/** The type of the values of a schema. */
export type ValueOf<S> = S extends Schema<infer T> ? T : never;
/** A property that may be missing. */
export interface Optional<S> {
  optional: S;
}
type Properties = Record<string, Schema<any> | Optional<Schema<any>>>;
type Flat<T> = { [K in keyof T]: T[K] };
/** The object that these properties describe. */
export type ObjectOf<P extends Properties> = Flat<
  { [K in keyof P as P[K] extends Optional<any> ? never : K]: ValueOf<P[K]> } & {
    [K in keyof P as P[K] extends Optional<any> ? K : never]?: P[K] extends Optional<infer S> ? ValueOf<S> : never;
  }
>;
/** Further keywords of JSON Schema, such as `minimum`, `description` and `default`. */
export type Keywords = { [word: string]: Json };

/** Builds JSON Schemas of parameters and results. `ValueOf<typeof schema>` is the type of their values. */
export const t = {
  string: (keywords: Keywords = {}): Schema<string> => ({ ...keywords, type: "string" }),
  integer: (keywords: Keywords = {}): Schema<number> => ({ ...keywords, type: "integer" }),
  number: (keywords: Keywords = {}): Schema<number> => ({ ...keywords, type: "number" }),
  boolean: (keywords: Keywords = {}): Schema<boolean> => ({ ...keywords, type: "boolean" }),
  /** One of these values. */
  choice: <const V extends readonly (string | number | boolean | null)[]>(...values: V): Schema<V[number]> => ({
    enum: [...values],
  }),
  nullable: <T>(schema: Schema<T>): Schema<T | null> => ({ anyOf: [schema as Json, { type: "null" }] }),
  array: <T>(items: Schema<T>, keywords: Keywords = {}): Schema<T[]> => ({ ...keywords, type: "array", items: items as Json }),
  /** Any names, with values of one schema. */
  record: <T>(values: Schema<T>): Schema<Record<string, T>> => ({ type: "object", additionalProperties: values as Json }),
  /** These properties. Those without `optional` and without a `default` are required. */
  object: <P extends Properties>(properties: P): Schema<ObjectOf<P>> => {
    const schemas = Object.entries(properties).map(([name, entry]) => ({
      name,
      schema: "optional" in entry ? (entry.optional as Schema<unknown>) : (entry as Schema<unknown>),
      required: !("optional" in entry) && !("default" in entry),
    }));
    return {
      type: "object",
      properties: Object.fromEntries(schemas.map(({ name, schema }) => [name, schema as Json])),
      required: schemas.filter(({ required }) => required).map(({ name }) => name),
    };
  },
  optional: <S extends Schema<any>>(schema: S): Optional<S> => ({ optional: schema }),
  /** A schema in the words of JSON Schema, whose values have the type T. */
  json: <T>(schema: Keywords): Schema<T> => schema as Schema<T>,
};

/** Returns parameters with the defaults of their schema. A start may leave out what has a default. */
export function withDefaults(schema: Schema<unknown> | undefined, parameters: object): object {
  const properties = (schema?.["properties"] ?? {}) as Record<string, Keywords>;
  const defaults = Object.entries(properties).filter(([, property]) => "default" in property);
  return { ...Object.fromEntries(defaults.map(([name, property]) => [name, property["default"]])), ...parameters };
}
