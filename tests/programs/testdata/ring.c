/*
 * ring NAME TURNS: one of a ring of programs, in C. It tells the number and
 * first packet of its queue pairs to the left and to the right, hears those
 * that they are joined with, and says what its name was when it had come round.
 */
#include "ring.h"

int main(int argc, char **argv)
{
	struct ring r;
	uint32_t left[2], right[2];
	char text[64];
	int i;
	CHECK(argc == 3);
	ring_open(&r);
	printf("ready\n%u 0 %u 0\n", r.left->qp_num, r.right->qp_num);
	fflush(stdout);
	CHECK(scanf("%u %u %u %u", &left[0], &left[1], &right[0], &right[1]) == 4);
	loop_join(r.left, left[0], left[1]);
	loop_join(r.right, right[0], right[1]);
	puts("joined");
	fflush(stdout);
	CHECK(scanf(" go") == 0);
	for (i = 0; i < atoi(argv[2]); i++) {
		if (i % 4 == 0)
			memset(text, 0, sizeof text);
		strcat(text, argv[1]);
		ring_turn(&r, text);
	}
	puts(text);
	ring_close(&r);
	return 0;
}
