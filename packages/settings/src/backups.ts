/** Settings of backups to targets. */
import { choice, text } from "./forms.ts";

export const BACKUP_SETTINGS = {
  restic: text("HIBERNAUT_RESTIC", {
    default: "restic",
    pattern: "^(/[^\\x00-\\x1f]+|[A-Za-z0-9._-]+)$",
    accepts: "the name of a program or its absolute path",
    description:
      "The restic that stores [backups at targets](backup.md). The default is the one in the PATH, such as that of Debian's package. Version 0.14 or later.",
  }),
  backupVerify: choice("HIBERNAUT_BACKUP_VERIFY", ["sample", "pieces"], {
    default: "sample",
    description:
      "What is [read back from a target](backup.md#what-is-verified) before a backup counts. `sample`: the database, and as many randomly chosen bytes as the backup added, at least 64 MB. `pieces`: all that was sent, which reads a volume of 100 GB in full although little of it is new. The default is `sample` because many servers charge for what is read.",
  }),
};
