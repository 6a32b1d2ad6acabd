/* A program that registers memory, and with an argument writes behind it. */
#include <infiniband/verbs.h>

#include "check.h"

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	char *mem = malloc(4096);
	(void)argv;
	CHECK(list && list[0] && (ctx = ibv_open_device(list[0])) && (pd = ibv_alloc_pd(ctx)));
	CHECK((mr = ibv_reg_mr(pd, mem, 4096, IBV_ACCESS_LOCAL_WRITE)));
	if (argc > 1)
		((volatile char *)mem)[4096] = 1;
	CHECK(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd) && !ibv_close_device(ctx));
	ibv_free_device_list(list);
	free(mem);
	puts("closed");
	return 0;
}
