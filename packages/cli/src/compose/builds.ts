/** Images of services that are built from the project's directories. */
import type { BuildPlan } from "@hibernaut/compose";
import { DEFAULT_PORT } from "../appfile/services.ts";
import type { Context } from "../context.ts";

/** Makes an image. Resolves to its reference. */
type Make = (context: Context, build: BuildPlan) => Promise<string>;

/**
 * Makes each image once, for all services that are built in the same way, as a web server and its workers are. Of one directory, one
 * at a time: a second build there would be refused.
 */
export class Builds {
  readonly #make: Make;
  readonly #images = new Map<string, Promise<string>>();
  /** The last build of each directory. */
  readonly #last = new Map<string, Promise<unknown>>();

  constructor(make: Make = makeImage) {
    this.#make = make;
  }

  /** Returns the reference of the image. */
  image(context: Context, build: BuildPlan): Promise<string> {
    const key = JSON.stringify(build);
    const known = this.#images.get(key);
    if (known !== undefined) return known;
    const before = this.#last.get(build.directory) ?? Promise.resolve();
    const image = before.catch(() => {}).then(() => this.#make(context, build));
    this.#last.set(build.directory, image);
    this.#images.set(key, image);
    return image;
  }
}

async function makeImage(context: Context, { directory, dockerfile, target, args }: BuildPlan): Promise<string> {
  const [{ buildImage }, { BUILD_TIMEOUT_S }] = await Promise.all([
    import("../build/build.ts"),
    import("../build/options.ts"),
  ]);
  context.say("Building the image");
  const more = { builder: undefined, ignorefile: undefined, secrets: [], commandNamed: false, fresh: false };
  const built = await buildImage(
    { ...more, directory, dockerfile, target, args, port: DEFAULT_PORT, timeout: BUILD_TIMEOUT_S },
    context,
  );
  return built.image;
}
