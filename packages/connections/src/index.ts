/** What other packages may use. */
export { ConnectionBudget } from "./budget.ts";
export { guard, guardHttp } from "./guard.ts";
export { BACKLOG, connectionLimits } from "./limits.ts";
export { cannotListen } from "./listening.ts";
export { openConnections } from "./open.ts";
export { RequestPlaces, TOO_MANY_REQUESTS } from "./requests.ts";
export type { Seat } from "./seat.ts";
export type { Shares } from "./shares.ts";
