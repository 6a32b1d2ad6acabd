/* How libibverbs finds its devices: it looks into sysfs for their list only
 * where netlink does not tell. With an argument there is no netlink. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static int refuse, looked;

DIR *opendir(const char *path)
{
	DIR *(*real)(const char *) = (DIR *(*)(const char *))dlsym(RTLD_NEXT, "opendir");
	looked |= !strncmp(path, "/sys/class/infiniband_verbs", 27);
	return real(path);
}

int socket(int family, int type, int protocol)
{
	int (*real)(int, int, int) = (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");
	if (refuse && family == AF_NETLINK && protocol == NETLINK_RDMA) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	return real(family, type, protocol);
}

int main(int argc, char **argv)
{
	void *lib = dlopen("libibverbs.so.1", RTLD_NOW);
	void **(*list)(int *) = lib ? (void **(*)(int *))dlsym(lib, "ibv_get_device_list") : NULL;
	const char *(*name)(void *) = lib ? (const char *(*)(void *))dlsym(lib, "ibv_get_device_name") : NULL;
	void **found;
	int n;
	(void)argv;
	refuse = argc > 1;
	if (!list || !name || !(found = list(&n)))
		return 1;
	printf("%d devices, the first is %s, found by %s\n", n, n ? name(found[0]) : "none", looked ? "sysfs" : "netlink");
	return 0;
}
