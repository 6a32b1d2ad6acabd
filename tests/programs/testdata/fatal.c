/* Waits for the end of its device, and sees that its calls are EIO then. */
#include "loop.h"

int main(void)
{
	static struct loop l;
	struct ibv_async_event event;

	loop_open(&l, device());
	loop_turn(&l);
	puts("ready");
	fflush(stdout);
	CHECK(!ibv_get_async_event(l.ctx, &event));
	CHECK(event.event_type == IBV_EVENT_DEVICE_FATAL);
	ibv_ack_async_event(&event);
	CHECK(!ibv_alloc_pd(l.ctx) && errno == EIO);
	puts("the device has ended");
	return 4;
}
