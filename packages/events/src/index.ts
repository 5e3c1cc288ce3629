/** What other packages may use. */
export { passes, type StreamFilter } from "./filter.ts";
export { EventStream, type Gap, type Position, type Told } from "./stream.ts";
export { openWebhooks } from "./webhooks/open.ts";
export { OUTCOMES } from "./webhooks/rules.ts";
export { unknownWebhook, type Webhooks } from "./webhooks/webhooks.ts";
export { serverSent, textOf } from "./wire.ts";
