/** The version of Hibernaut. */
import platform from "../package.json" with { type: "json" };

/** The version in the platform's package.json. */
export const VERSION = platform.version;
