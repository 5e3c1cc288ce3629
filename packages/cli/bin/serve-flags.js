/** What the platform's Node is told about its garbage collector. Written for old Node, like `hibernaut.js`. */

/**
 * New objects are collected each time when they take this many MB (16 by default). What lives longer is copied meanwhile, and
 * nobody is answered: with thousands of connections that come and go, for 15 ms each time, now for 5 ms, more often.
 */
const NEW_OBJECTS_MB = 4;
/** This many threads help the collector by default. Where there are fewer CPUs, they wait for each other, and everyone for them. */
const HELPERS = 4;

/**
 * Returns the flags with which Node has to start for a command, or none when it has them, the user has set them, or the command is
 * not `serve`, which alone runs for days.
 *
 * @param {string[]} args of the command line, without Node and the program
 * @param {{ execArgv: string[], options?: string | undefined, cpus: number }} now what Node was started with, by its command line and by
 * NODE_OPTIONS, and how many CPUs there are for it
 */
export function serveFlags(args, { execArgv, options = "", cpus }) {
  if (args.find((arg) => !arg.startsWith("-")) !== "serve") return [];
  const wanted = [
    `--max-semi-space-size=${NEW_OBJECTS_MB}`,
    `--v8-pool-size=${Math.max(1, Math.min(HELPERS, cpus - 1))}`,
  ];
  // Node takes both spellings.
  const given = `${execArgv.join(" ")} ${options}`.replace(/_/g, "-");
  return wanted.filter((flag) => !given.includes(String(flag.split("=")[0])));
}
