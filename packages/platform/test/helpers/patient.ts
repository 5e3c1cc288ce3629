/**
 * Settings under which the platform's time limits mean a fault, even on a host whose cores several runs of the tests
 * share: there, a cold start takes twenty times as long.
 */
export const PATIENT = {
  HIBERNAUT_BOOT_TIMEOUT: "5m",
  HIBERNAUT_RESUME_TIMEOUT: "2m",
  HIBERNAUT_SUSPEND_TIMEOUT: "4m",
  HIBERNAUT_READY_TIMEOUT: "2m",
};
