/** A project directory of a test, and what is built from it. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { ROOT } from "../../bin/newer-node.js";
import { type Built, buildImage } from "../../src/build/build.ts";
import { placeName } from "../../src/build/place.ts";
import type { BuildRequest } from "../../src/build/request.ts";

/** Packing Node takes seconds, so it is done once per checkout. */
const BASES = join(ROOT, ".build/test-bases");

interface Settings {
  Cmd: string[];
  Entrypoint?: string[];
  Env: string[];
}

export class Project {
  /** The directory that is built. */
  readonly path: string;
  /** Where all builds are. */
  readonly builds: string;
  /** What the builds said. */
  said: string[] = [];

  /** A new directory of this name below `temp`. */
  constructor(temp: string, name: string) {
    this.path = join(temp, name);
    this.builds = join(temp, "builds");
    mkdirSync(this.path);
    mkdirSync(BASES, { recursive: true });
    mkdirSync(this.builds, { recursive: true });
    try {
      symlinkSync(BASES, join(this.builds, "bases"));
    } catch {
      // another project of the test has made it
    }
  }

  /** Where the builds of this directory are. */
  get home(): string {
    return join(this.builds, placeName(this.path));
  }

  get log(): string {
    return readFileSync(join(this.home, "build.log"), "utf8");
  }

  write(name: string, content: string | object): void {
    mkdirSync(dirname(join(this.path, name)), { recursive: true });
    writeFileSync(join(this.path, name), typeof content === "string" ? content : JSON.stringify(content));
  }

  build(changes: Partial<BuildRequest> = {}): Promise<Built> {
    const none = { builder: undefined, dockerfile: undefined, target: undefined, ignorefile: undefined };
    const some = {
      directory: this.path,
      args: {},
      secrets: [],
      port: 8080,
      commandNamed: false,
      fresh: false,
      timeout: 60,
    };
    const progress = <T>(label: string, work: Promise<T>): Promise<T> => {
      this.said.push(label);
      return work;
    };
    const say = (line: string) => void this.said.push(line);
    return buildImage({ ...none, ...some, ...changes }, { progress, say, warn: say }, this.builds);
  }

  /** The path of a blob of the layout. */
  blob(digest: string): string {
    return join(this.home, "layout/blobs/sha256", digest.slice("sha256:".length));
  }

  /** What machines get: the settings, and the layers with what is in each. */
  opened({ digest }: Pick<Built, "digest">) {
    const { config, layers } = JSON.parse(readFileSync(this.blob(digest), "utf8")) as {
      config: { digest: string };
      layers: { digest: string }[];
    };
    const { config: settings } = JSON.parse(readFileSync(this.blob(config.digest), "utf8")) as { config: Settings };
    const list = (one: string) =>
      execFileSync("tar", ["-tzf", this.blob(one)], { encoding: "utf8" })
        .trim()
        .split("\n");
    const files = (layer: number) => list(layers[layer]?.digest ?? "");
    return { settings, digests: layers.map((one) => one.digest), files };
  }
}
