#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <rdma/rdma_cma.h>

/* cm_is_itself calls librdmacm, which has nothing to work with or has, and
 * looks whose functions the names are. */
int cm_is_itself(void)
{
	void *functions[] = { (void *)rdma_create_qp, (void *)rdma_destroy_qp, (void *)rdma_get_devices };
	struct rdma_event_channel *channel = rdma_create_event_channel();
	Dl_info info;
	unsigned i;
	if (channel)
		rdma_destroy_event_channel(channel);
	else if (errno != ENODEV && errno != ENOENT)
		return 0;
	for (i = 0; i < sizeof functions / sizeof *functions; i++)
		if (!dladdr(functions[i], &info) || !strstr(info.dli_fname, "librdmacm"))
			return 0;
	return 1;
}
