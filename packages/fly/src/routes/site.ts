/** What flyctl asks Fly's website rather than the Machines API: about the organisation, before it makes a machine of an image. */
import { Type } from "typebox";
import { Refusal } from "../failure.ts";
import { ORGANIZATION } from "../view/others.ts";
import type { Routes } from "./table.ts";

/** Where it asks. */
export const SITE = "/api/v1";

const { name, slug, internal_numeric_id } = ORGANIZATION;
const ORGANIZATION_VIEW = {
  ...{ id: slug, internal_numeric_id, slug, raw_slug: slug, name, personal: true },
  // Commands end where nobody pays.
  ...{ paid_plan: true, billable: true, billing_status: "CURRENT", provisions_beta_extensions: false },
};
/** The number of every build: none is kept. */
const NO_BUILD = 0;

const Build = Type.Object({ app_name: Type.Optional(Type.String()), status: Type.Optional(Type.String()) });

export function siteRoutes(route: Routes): void {
  route("GET", "/organizations", {}, async () => ({ organizations: [ORGANIZATION_VIEW] }));
  route("GET", "/organizations/:org_slug", {}, async ({ of }) => {
    if (of("org_slug") === slug) return { organization: ORGANIZATION_VIEW };
    throw new Refusal(404, `organization not found: there is one, ${JSON.stringify(slug)}.`);
  });
  // Fly keeps a note of how each image was found. flyctl warns, and tells Fly's error tracker, when it cannot leave one.
  route("POST", "/builds", { body: Build }, async () => ({ id: NO_BUILD, status: "started", wallclock_time_ms: 0 }));
  route("POST", "/builds/finish", { body: Build }, async ({ body }) => ({
    ...{ id: NO_BUILD, status: body.status ?? "completed", wallclock_time_ms: 0 },
  }));
}
