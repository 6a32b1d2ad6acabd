/*
 * Each rank exchanges a mebibyte with each by Alltoall, and reads and writes the
 * other ranks' windows: a put, an accumulate, a get.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LENGTH = 1 << 20 };

int main(int argc, char **argv)
{
	int rank, ranks, bad = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);

	unsigned char *out = malloc((size_t)ranks * LENGTH), *in = malloc((size_t)ranks * LENGTH);
	for (int r = 0; r < ranks; r++)
		for (int i = 0; i < LENGTH; i++)
			out[r * LENGTH + i] = 31 * rank + 7 * r + i % 251;
	MPI_Alltoall(out, LENGTH, MPI_BYTE, in, LENGTH, MPI_BYTE, MPI_COMM_WORLD);
	for (int r = 0; r < ranks; r++)
		for (int i = 0; i < LENGTH; i++)
			bad += in[r * LENGTH + i] != (unsigned char)(31 * r + 7 * rank + i % 251);

	long *window = malloc((ranks + 1) * sizeof *window), sum = 0, one = 1, got = -1;
	MPI_Win win;
	MPI_Win_create(window, (ranks + 1) * sizeof *window, sizeof *window, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	for (int r = 0; r <= ranks; r++)
		window[r] = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (int r = 0; r < ranks; r++) {
		long mine = 100 + rank;
		MPI_Put(&mine, 1, MPI_LONG, r, rank, 1, MPI_LONG, win);
		MPI_Accumulate(&one, 1, MPI_LONG, r, ranks, 1, MPI_LONG, MPI_SUM, win);
		MPI_Win_flush(r, win);
	}
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, (rank + 1) % ranks, 0, win);
	MPI_Get(&got, 1, MPI_LONG, (rank + 1) % ranks, rank, 1, MPI_LONG, win);
	MPI_Win_unlock((rank + 1) % ranks, win);
	bad += got != 100 + rank || window[ranks] != ranks;
	for (int r = 0; r < ranks; r++)
		sum += window[r];
	bad += sum != 100L * ranks + (long)ranks * (ranks - 1) / 2;
	MPI_Win_free(&win);
	if (!bad)
		printf("rank %d of %d has it all\n", rank, ranks);
	MPI_Finalize();
	return bad != 0;
}
