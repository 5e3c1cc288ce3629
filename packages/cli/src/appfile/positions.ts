/**
 * Finds the position of every key in a TOML text. The parser gives positions only for syntax errors, and a warning
 * about a key is of little use without its line. The text must be one that the parser has accepted: nothing is checked
 * here.
 */

/** Keys and array indexes from the top of the document. */
export type Path = readonly (string | number)[];

/** Counted from 1; columns in UTF-16 units, as editors count them. */
export interface Position {
  line: number;
  column: number;
}

const STRING = /"""(?:\\[^]|[^\\])*?"""(?!")|'''[^]*?'''(?!')|"(?:\\.|[^"\\\n])*"|'[^'\n]*'/y;
const BARE_KEY = /[^\s.=\][{}#"',]+/y;
const SPACES = /[ \t]*/y;
/** What may be between two values or two lines. */
const GAP = /(?:\s|#[^\n]*)*/y;
/** Numbers, booleans, dates: a date may hold a space. */
const PLAIN_VALUE = /[^,\]}#\n]+/y;

interface Key {
  name: string;
  at: number;
}

/** The position of every key and array element of `text`. `decode` returns the name of a quoted key. */
export function findPositions(text: string, decode: (quoted: string) => string): PositionMap {
  const scanner = new Scanner(text, decode);
  scanner.document();
  return scanner.found;
}

/** Positions by path. */
export class PositionMap {
  readonly #offsets = new Map<string, number>();
  readonly #lines: number[];

  constructor(text: string) {
    this.#lines = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)];
  }

  /** A table may be opened several times: the first one counts. */
  add(path: Path, offset: number): void {
    const key = JSON.stringify(path);
    if (!this.#offsets.has(key)) this.#offsets.set(key, offset);
  }

  /** The position of the path's key, or undefined when the text does not have it. */
  exact(path: Path): Position | undefined {
    const offset = this.#offsets.get(JSON.stringify(path));
    if (offset === undefined) return undefined;
    const line = this.#lines.findLastIndex((start) => start <= offset);
    return { line: line + 1, column: offset - (this.#lines[line] ?? 0) + 1 };
  }

  /** Like `exact`; for a missing key, the position of the table that it is missing from. */
  near(path: Path): Position {
    return this.exact(path) ?? (path.length === 0 ? { line: 1, column: 1 } : this.near(path.slice(0, -1)));
  }
}

class Scanner {
  readonly found: PositionMap;
  readonly #text: string;
  readonly #decode: (quoted: string) => string;
  /** How many elements each array of tables has so far. */
  readonly #counts = new Map<string, number>();
  #at = 0;

  constructor(text: string, decode: (quoted: string) => string) {
    this.#text = text;
    this.#decode = decode;
    this.found = new PositionMap(text);
  }

  document(): void {
    let table: Path = [];
    for (this.#match(GAP); this.#at < this.#text.length; this.#match(GAP)) {
      if (this.#text[this.#at] === "[") table = this.#header();
      else this.#keyAndValue(table);
    }
  }

  /** `[a.b]` or `[[a.b]]`: the path of the table that it opens. */
  #header(): Path {
    const isArray = this.#text.startsWith("[[", this.#at);
    this.#at += isArray ? 2 : 1;
    const keys = this.#keys();
    this.#at += isArray ? 2 : 1;
    let path: Path = [];
    for (const [index, { name, at }] of keys.entries()) {
      path = [...path, name];
      this.found.add(path, at);
      const count = this.#counts.get(JSON.stringify(path));
      if (isArray && index === keys.length - 1) {
        this.#counts.set(JSON.stringify(path), (count ?? 0) + 1);
        path = [...path, count ?? 0];
        this.found.add(path, at);
      } else if (count !== undefined) {
        // Below an array of tables a header means its last element.
        path = [...path, count - 1];
      }
    }
    return path;
  }

  #keyAndValue(table: Path): void {
    let path = table;
    for (const { name, at } of this.#keys()) {
      path = [...path, name];
      this.found.add(path, at);
    }
    this.#at += 1; // the equals sign
    this.#match(SPACES);
    this.#value(path);
  }

  /** Reads a dotted key. */
  #keys(): Key[] {
    const keys: Key[] = [];
    do {
      if (keys.length > 0) this.#at += 1; // the dot
      this.#match(SPACES);
      const at = this.#at;
      const quoted = this.#match(STRING);
      keys.push({ name: quoted === "" ? this.#match(BARE_KEY) : this.#decode(quoted), at });
      this.#match(SPACES);
    } while (this.#text[this.#at] === ".");
    return keys;
  }

  #value(path: Path): void {
    const open = this.#text[this.#at];
    if (open === "[") this.#list("]", (index) => this.#element([...path, index]));
    else if (open === "{") this.#list("}", () => this.#keyAndValue(path));
    else if (this.#match(STRING) === "") this.#match(PLAIN_VALUE);
  }

  #element(path: Path): void {
    this.found.add(path, this.#at);
    this.#value(path);
  }

  #list(close: string, readOne: (index: number) => void): void {
    this.#at += 1;
    this.#match(GAP);
    for (let index = 0; this.#at < this.#text.length && this.#text[this.#at] !== close; index++) {
      readOne(index);
      this.#match(GAP);
      if (this.#text[this.#at] === ",") this.#at += 1;
      this.#match(GAP);
    }
    this.#at += 1;
  }

  /** The match of the pattern at this position, or an empty text. */
  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0] ?? "";
    this.#at += found.length;
    return found;
  }
}
