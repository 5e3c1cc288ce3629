#define _GNU_SOURCE
#include "system.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/random.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <net/route.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void system_note(const char *what, int error) {
  if (error == 0) fprintf(stderr, "agent: %s\n", what);
  else fprintf(stderr, "agent: %s: %s\n", what, strerror(error < 0 ? -error : error));
}

static int mount_on(const char *source, const char *target, const char *type, unsigned long flags, const char *data) {
  mkdir(target, 0755);
  if (mount(source, target, type, flags, data) == 0 || errno == EBUSY) return 0;
  int error = -errno;
  system_note(target, error);
  return error;
}

static int write_file(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return -errno;
  size_t length = strlen(text);
  int error = write(fd, text, length) == (ssize_t)length ? 0 : -EIO;
  close(fd);
  return error;
}

/* Overwrites a file rather than emptying it first, which would cost a fork more than all the rest: its texts have the same
 * lengths as those of its origin. */
static int overwrite_file(const char *path, const char *text) {
  struct stat file;
  int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return -errno;
  size_t length = strlen(text);
  int error = write(fd, text, length) == (ssize_t)length ? 0 : -EIO;
  if (fstat(fd, &file) == 0 && file.st_size > (off_t)length && ftruncate(fd, (off_t)length) < 0) error = -errno;
  close(fd);
  return error;
}

/* Without swap, when an app needs more memory than there is, the kernel rereads pages of programs from disk for minutes
 * before it kills anything. The multi-generational LRU can guarantee that pages used within the last second stay, and
 * kills the app otherwise. Kernels before 6.1 do not have it. */
static void end_thrashing_early(void) {
  if (write_file("/sys/kernel/mm/lru_gen/enabled", "y") == 0) write_file("/sys/kernel/mm/lru_gen/min_ttl_ms", "1000");
}

void system_allow_thrashing(void) {
  int error = write_file("/sys/kernel/mm/lru_gen/min_ttl_ms", "0");
  if (error < 0 && error != -ENOENT) system_note("min_ttl_ms", error);
}

void system_mount_early(void) {
  mount_on("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
  mount_on("sys", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
  mount_on("dev", "/dev", "devtmpfs", MS_NOSUID, NULL);
  mount_on("pts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "mode=0620,ptmxmode=0666");
  mount_on("shm", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
  mount_on("run", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755");
  mount_on("cgroup", "/sys/fs/cgroup", "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
  end_thrashing_early();
  if (symlink("/proc/self/fd", "/dev/fd") < 0 && errno != EEXIST) system_note("/dev/fd", errno);
  if (symlink("/proc/self/fd/0", "/dev/stdin") < 0 && errno != EEXIST) system_note("/dev/stdin", errno);
  if (symlink("/proc/self/fd/1", "/dev/stdout") < 0 && errno != EEXIST) system_note("/dev/stdout", errno);
  if (symlink("/proc/self/fd/2", "/dev/stderr") < 0 && errno != EEXIST) system_note("/dev/stderr", errno);
}

void system_open_standard_files(void) {
  int fd;
  do fd = open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= 2);
  if (fd > 2) close(fd);
}

void system_set_oom_score(const char *score) {
  int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, score, strlen(score)) < 0) system_note("oom_score_adj", errno);
  if (fd >= 0) close(fd);
}

void system_load_modules(const char *list) {
  char path[256];
  FILE *file = fopen(list, "re");
  if (file == NULL) return; /* a kernel with everything built in has no list */
  while (fgets(path, sizeof path, file) != NULL) {
    path[strcspn(path, "\n")] = '\0';
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST)) system_note(path, errno);
    if (fd >= 0) close(fd);
    unlink(path); /* the initramfs takes memory, and snapshots store memory */
  }
  fclose(file);
}

static bool port_device(const char *name, char *device, size_t size) {
  char path[300], text[64];
  DIR *ports = opendir("/sys/class/virtio-ports");
  bool found = false;
  for (struct dirent *entry; !found && ports != NULL && (entry = readdir(ports)) != NULL;) {
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "/sys/class/virtio-ports/%s/name", entry->d_name);
    system_read_file(path, text, sizeof text);
    text[strcspn(text, "\n")] = '\0';
    if (strcmp(text, name) != 0) continue;
    snprintf(device, size, "/dev/%s", entry->d_name);
    found = true;
  }
  if (ports != NULL) closedir(ports);
  return found;
}

int system_open_port(const char *name, int deadline_ms) {
  char device[300];
  for (int waited = 0; waited < deadline_ms; waited += 5) {
    int fd = port_device(name, device, sizeof device) ? open(device, O_RDWR | O_NONBLOCK | O_CLOEXEC) : -1;
    if (fd >= 0) return fd;
    usleep(5000); /* the driver announces its ports some time after it is loaded */
  }
  return -ETIMEDOUT;
}

static int layer_folder = -1;

int system_layer(void) { return layer_folder; }

int system_enter_image(const char *image_device, const char *layer_device) {
  int error;
  struct stat layer;
  if ((error = mount_on(image_device, "/image", "squashfs", MS_RDONLY, NULL)) < 0) return error;
  if (stat(layer_device, &layer) == 0) error = mount_on(layer_device, "/layer", "ext4", MS_NOATIME, NULL);
  else error = mount_on("layer", "/layer", "tmpfs", 0, "mode=0755");
  if (error < 0) return error;
  layer_folder = open("/layer", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  mkdir("/layer/upper", 0755);
  mkdir("/layer/work", 0755);
  if ((error = mount_on("root", "/root", "overlay", 0, "lowerdir=/image,upperdir=/layer/upper,workdir=/layer/work")) < 0) return error;
  static const char *const moved[] = {"/proc", "/sys", "/dev", "/run"};
  for (size_t i = 0; i < sizeof moved / sizeof moved[0]; i++) {
    char target[32];
    snprintf(target, sizeof target, "/root%s", moved[i]);
    mkdir(target, 0755);
    if (mount(moved[i], target, NULL, MS_MOVE, NULL) < 0) return -errno;
  }
  mkdir("/root/tmp", 0755);
  chmod("/root/tmp", 01777);
  if (chdir("/root") < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 || chdir("/") < 0) return -errno;
  return 0;
}

int system_make_folders(const char *path) {
  char part[PATH_MAX];
  snprintf(part, sizeof part, "%s", path);
  for (char *slash = strchr(part + 1, '/');; slash = strchr(slash + 1, '/')) {
    if (slash != NULL) *slash = '\0';
    if (mkdir(part, 0755) < 0 && errno != EEXIST) return -errno;
    if (slash == NULL) return 0;
    *slash = '/';
  }
}

static void make_parent(const char *path) {
  char parent[100];
  snprintf(parent, sizeof parent, "%.*s", (int)(strrchr(path, '/') - path), path);
  if (mkdir(parent, 0755) < 0 && errno != EEXIST) system_note(parent, errno);
}

void system_make_local_api(const char *path, const char *twin) {
  make_parent(path);
  make_parent(twin);
  if (symlink(path, twin) < 0 && errno != EEXIST) system_note(twin, errno);
}

static void set_address(struct sockaddr *out, in_addr_t address) {
  struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = address};
  memcpy(out, &in, sizeof in);
}

static int interface_up(int fd, const char *name, in_addr_t address, in_addr_t mask) {
  struct ifreq request = {0};
  snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
  if (address != 0) {
    set_address(&request.ifr_addr, address);
    if (ioctl(fd, SIOCSIFADDR, &request) < 0) return -errno;
    set_address(&request.ifr_netmask, mask);
    if (ioctl(fd, SIOCSIFNETMASK, &request) < 0) return -errno;
  }
  if (ioctl(fd, SIOCGIFFLAGS, &request) < 0) return -errno;
  request.ifr_flags |= IFF_UP | IFF_RUNNING;
  return ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
}

static int network_up(const struct config *config) {
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -errno;
  int error = interface_up(fd, "lo", 0, 0);
  char text[64];
  struct in_addr address, gateway;
  if (config->address != NULL) {
    snprintf(text, sizeof text, "%s", config->address); /* a text that is cut off is not a valid address, either */
    char *slash = strchr(text, '/');
    int prefix = slash != NULL ? atoi(slash + 1) : 32;
    if (slash != NULL) *slash = '\0';
    if (prefix < 1 || prefix > 32 || inet_aton(text, &address) == 0) error = -EINVAL;
    else error = interface_up(fd, "eth0", address.s_addr, htonl(~0u << (32 - prefix)));
  }
  if (error == 0 && config->gateway != NULL) {
    struct rtentry route = {.rt_flags = RTF_UP | RTF_GATEWAY};
    set_address(&route.rt_dst, 0);
    set_address(&route.rt_genmask, 0);
    if (inet_aton(config->gateway, &gateway) == 0) error = -EINVAL;
    else set_address(&route.rt_gateway, gateway.s_addr);
    if (error == 0 && ioctl(fd, SIOCADDRT, &route) < 0 && errno != EEXIST) error = -errno;
  }
  close(fd);
  return error;
}

int system_set_mac(const char *mac) {
  struct ifreq request = {.ifr_name = "eth0", .ifr_hwaddr.sa_family = ARPHRD_ETHER};
  unsigned byte[6];
  char rest;
  if (sscanf(mac, "%2x:%2x:%2x:%2x:%2x:%2x%c", &byte[0], &byte[1], &byte[2], &byte[3], &byte[4], &byte[5], &rest) != 6) return -EINVAL;
  for (size_t i = 0; i < 6; i++) request.ifr_hwaddr.sa_data[i] = (char)byte[i];
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -errno;
  int error = ioctl(fd, SIOCSIFHWADDR, &request) < 0 ? -errno : 0;
  close(fd);
  return error;
}

static void write_hosts(const struct config *config, const char *name) {
  static char text[CONFIG_MAX_HOSTS * 512];
  int used = snprintf(text, sizeof text, "127.0.0.1 localhost\n::1 localhost ip6-localhost\n127.0.1.1 %s\n", name);
  for (size_t i = 0; i < config->host_count && used > 0 && (size_t)used < sizeof text; i++)
    used += snprintf(text + used, sizeof text - (size_t)used, "%s\n", config->hosts[i]);
  int error = used < 0 || (size_t)used >= sizeof text ? -E2BIG : overwrite_file("/etc/hosts", text);
  if (error < 0) system_note("/etc/hosts", error);
}

/* Often a link to a resolver that does not exist here. */
static void write_resolver(const char *dns) {
  char text[512], now[512];
  snprintf(text, sizeof text, "nameserver %s\n", dns);
  if (strcmp(system_read_file("/etc/resolv.conf", now, sizeof now), text) == 0) return;
  unlink("/etc/resolv.conf");
  write_file("/etc/resolv.conf", text);
}

int system_configure(const struct config *config) {
  char text[512];
  if (config->clock_ns != 0) system_set_clock(config->clock_ns);
  const char *name = config->hostname != NULL ? config->hostname : "machine";
  if (sethostname(name, strlen(name)) < 0) system_note("the hostname", errno);
  mkdir("/etc", 0755);
  snprintf(text, sizeof text, "%s\n", name);
  overwrite_file("/etc/hostname", text);
  write_hosts(config, name);
  if (config->dns != NULL) write_resolver(config->dns);
  return network_up(config);
}

int system_set_clock(uint64_t wall_ns) {
  struct timespec now = {.tv_sec = (time_t)(wall_ns / 1000000000u), .tv_nsec = (long)(wall_ns % 1000000000u)};
  return clock_settime(CLOCK_REALTIME, &now) < 0 ? -errno : 0;
}

uint64_t system_wall_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int system_add_entropy(const uint8_t *bytes, size_t length) {
  /* struct rand_pool_info: entropy in bits, size in bytes, the bytes. */
  struct {
    int entropy_count, buf_size;
    uint8_t bytes[64];
  } pool = {0};
  if (length > sizeof pool.bytes) length = sizeof pool.bytes;
  pool.entropy_count = (int)length * 8;
  pool.buf_size = (int)length;
  memcpy(pool.bytes, bytes, length);
  int fd = open("/dev/urandom", O_RDWR | O_CLOEXEC);
  if (fd < 0) return -errno;
  int error = ioctl(fd, RNDADDENTROPY, &pool) < 0 || ioctl(fd, RNDRESEEDCRNG) < 0 ? -errno : 0;
  close(fd);
  return error;
}

void system_sync(void) { sync(); }

_Noreturn void system_power_off(void) {
  sync();
  reboot(RB_POWER_OFF);
  for (;;) pause();
}

uint64_t system_monotonic_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

char *system_read_file(const char *path, char *out, size_t size) {
  size_t used = 0;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  for (ssize_t got = 1; fd >= 0 && got > 0 && used + 1 < size; used += got > 0 ? (size_t)got : 0) got = read(fd, out + used, size - 1 - used);
  if (fd >= 0) close(fd);
  out[used] = '\0';
  return out;
}

uint64_t system_oom_kills(void) {
  static char text[16384];
  const char *line = strstr(system_read_file("/proc/vmstat", text, sizeof text), "\noom_kill ");
  return line != NULL ? strtoull(line + 10, NULL, 10) : 0;
}
