/*
 * Threads that ask for events without end see nothing of their program's end:
 * no call returns with another error than that there is no event.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 3, UCM_GET_EVENT = 12 };

static sem_t asked;

static void *ask(void *file)
{
	char event[512];
	struct { uint32_t cmd; uint16_t in, out; uint64_t response; } get = { UCM_GET_EVENT, 8, sizeof event, (uintptr_t)event };
	int first = 1;
	while (write((intptr_t)file, &get, sizeof get) < 0 && errno == EAGAIN)
		if (first) {
			first = 0;
			sem_post(&asked);
		}
	perror("a thread sees the end of its program");
	_exit(9);
}

int main(void)
{
	pthread_t t;
	int i, cm = open("/dev/infiniband/rdma_cm", O_RDWR | O_NONBLOCK);
	sem_init(&asked, 0, 0);
	for (i = 0; cm >= 0 && i < THREADS; i++)
		if (pthread_create(&t, NULL, ask, (void *)(intptr_t)cm))
			return 1;
	for (i = 0; i < THREADS; i++)
		sem_wait(&asked);
	puts("it ends");
	return 0;
}
