/** Reads durations and sizes as the platform does: settings, app files and commands take the same forms. */
export { durationText, parseMegabytes, parseSeconds } from "@hibernaut/lib/quantities";
