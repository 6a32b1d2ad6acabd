/* Two ranks exchange a megabyte and look at every byte, with one request at a
 * time and with many. */
#include <mpi.h>
#include <stdio.h>

enum { SIZE = 1 << 20, PARTS = 64, PART = SIZE / PARTS };
static unsigned char out[SIZE], in[SIZE];

static unsigned char byte(int rank, int round, int i) { return i * 7 + i / 251 + rank * 31 + round; }

int main(int argc, char **argv)
{
	MPI_Request requests[2 * PARTS];
	int rank, ranks, round, i;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (ranks != 2) {
		fprintf(stderr, "%d ranks\n", ranks);
		return 1;
	}
	for (round = 0; round < 2; round++) {
		for (i = 0; i < SIZE; i++)
			out[i] = byte(rank, round, i);
		if (round == 0) {
			MPI_Sendrecv(out, SIZE, MPI_BYTE, 1 - rank, 1, in, SIZE, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else {
			for (i = 0; i < PARTS; i++)
				MPI_Irecv(in + i * PART, PART, MPI_BYTE, 1 - rank, i, MPI_COMM_WORLD, requests + i);
			for (i = PARTS; i-- > 0;) /* not in the order of the receives */
				MPI_Isend(out + i * PART, PART, MPI_BYTE, 1 - rank, i, MPI_COMM_WORLD, requests + PARTS + i);
			MPI_Waitall(2 * PARTS, requests, MPI_STATUSES_IGNORE);
		}
		for (i = 0; i < SIZE; i++)
			if (in[i] != byte(1 - rank, round, i)) {
				fprintf(stderr, "rank %d, round %d: byte %d is %d\n", rank, round, i, in[i]);
				return 1;
			}
	}
	printf("rank %d has the other's megabyte\n", rank);
	MPI_Finalize();
	return 0;
}
