/** What other packages may use. */
export { ensureAdminToken } from "./admin-token.ts";
export { buildApi } from "./app.ts";
export { AuditLog } from "./audit/log.ts";
export type { LocalConnections } from "./auth.ts";
export { backupMetrics } from "./backup-metrics.ts";
export { certificateMetrics } from "./certificate-metrics.ts";
export type { Api } from "./deps.ts";
export { listenForApi } from "./listen.ts";
export { acceptPlain, apiTlsOf, followTls, serverTls } from "./tls.ts";
export { verifyToken } from "./tokens.ts";
export { warmMetrics } from "./warm-metrics.ts";
export { webhookMetrics } from "./webhook-metrics.ts";
export { askWithin } from "./within.ts";
