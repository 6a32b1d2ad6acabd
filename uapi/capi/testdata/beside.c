/* rdma.h's program beside librdmacm, in whose header the same names are other
 * functions: beside_cm.c has that one. */
#include <stdio.h>
#include "user/rdma.h"

int cm_is_itself(void);

int main(void)
{
	static char memory[4096];
	int mr = rdma_reg_mr(memory, sizeof memory, RDMA_ACCESS_LOCAL_WRITE);
	int qp = rdma_create_qp(4, 4);
	if (mr < 0 || qp < 0 || !cm_is_itself() || rdma_destroy_qp(qp) || rdma_dereg_mr(mr)) {
		fprintf(stderr, "%s\n", rdma_error());
		return 1;
	}
	printf("each has its own\n");
	return 0;
}
