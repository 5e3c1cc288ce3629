/**
 * Node's binding to llhttp. There is no public way to it: this is the one place that knows the private one, and it
 * uses it as `lib/_http_common.js` of Node 24 does.
 */

/** What a head's callback is given; `pairs` and `target` are missing when they came in portions before. */
export type HeadValues = [
  major: number,
  minor: number,
  pairs: string[] | undefined,
  method: number | undefined,
  target: string | undefined,
  status: number | undefined,
  reason: string | undefined,
  upgrade: boolean,
  keepAlive: boolean,
];

export interface NativeParser {
  initialize(type: number, resource: object, maxHeaderSize: number, lenientFlags: number): void;
  /** What went wrong is returned, not thrown. */
  execute(piece: Buffer): unknown;
  finish(): unknown;
  [callback: number]: ((...values: never[]) => unknown) | null;
}

interface NativeParserClass {
  new (): NativeParser;
  REQUEST: number;
  RESPONSE: number;
  kOnHeaders: number;
  kOnHeadersComplete: number;
  kOnBody: number;
  kOnMessageComplete: number;
}

export const { HTTPParser, methods } = process.getBuiltinModule("node:_http_common") as unknown as {
  HTTPParser: NativeParserClass;
  methods: readonly string[];
};

/** More than any input has: limits are ours to test, not llhttp's. */
const MAX_HEADER_SIZE = 1 << 20;
const STRICT = 0;
/** What `kOnHeadersComplete` answers: read the body that the head announces, or know that there is none. */
export const BODY = 0;
export const NO_BODY = 1;

/** Makes it ready for the first byte of a stream. */
export function start(parser: NativeParser, type: number): void {
  parser.initialize(type, {}, MAX_HEADER_SIZE, STRICT);
}

/** Methods that llhttp knows, by its number for them, which has gaps: found by asking. */
export const METHODS = new Map<number, string>();
for (const method of methods) {
  const text = `${method} ${method === "CONNECT" ? "a:1" : "/"} HTTP/1.1\r\n\r\n`;
  let number = -1;
  const parser = new HTTPParser();
  parser[HTTPParser.kOnHeadersComplete] = (...values: HeadValues) => {
    number = values[3] ?? -1;
    return BODY;
  };
  start(parser, HTTPParser.REQUEST);
  parser.execute(Buffer.from(text));
  METHODS.set(number, method);
}

/** llhttp refuses all others. */
export const KNOWN_METHODS: ReadonlySet<string> = new Set(methods);
