/** What other packages may use. */
export { AppAddresses } from "./addresses.ts";
export { ConnectedProxies } from "./connected-proxies.ts";
export { type RunningCoordinator, startCoordinator } from "./start-coordinator.ts";
