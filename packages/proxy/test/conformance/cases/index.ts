/** All cases, by theme. */
import type { Case } from "../case.ts";
import { BAD_RESPONSES } from "./bad-responses.ts";
import { CHUNKED_REQUESTS } from "./chunked-requests.ts";
import { CONNECTIONS } from "./connections.ts";
import { FRAMING } from "./framing.ts";
import { HEADS } from "./heads.ts";
import { INTERIM } from "./interim.ts";
import { REQUEST_LINES } from "./request-lines.ts";
import { RESPONSES } from "./responses.ts";
import { UPGRADES } from "./upgrades.ts";

export const THEMES: readonly { name: string; cases: readonly Case[] }[] = [
  { name: "bodies of requests in chunks", cases: CHUNKED_REQUESTS },
  { name: "what frames a request", cases: FRAMING },
  { name: "heads of requests", cases: HEADS },
  { name: "request lines", cases: REQUEST_LINES },
  { name: "answers of apps", cases: RESPONSES },
  { name: "answers that are none", cases: BAD_RESPONSES },
  { name: "before the answer", cases: INTERIM },
  { name: "upgrades", cases: UPGRADES },
  { name: "connections", cases: CONNECTIONS },
];
