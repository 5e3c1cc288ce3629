/** The platform's own reading of durations and sizes: its settings, app files and the command line take the same forms. */
export { durationText, parseMegabytes, parseSeconds } from "../../../platform/src/lib/quantities.ts";
