import { describeStorage } from "./behaviour.ts";
import { openSqliteWorld } from "./sqlite-world.ts";

describeStorage("sqlite", { open: openSqliteWorld, cascadesUpdates: false });
