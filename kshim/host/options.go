package host

// Options of a Kernel; the zero value is good.
type Options struct {
	// RawDoorbell rings doorbells (POST_SEND by write) without telling Go's
	// scheduler, by syscall.RawSyscall. That saves a few hundred nanoseconds
	// a call, and keeps the scheduler from taking the processor away from a
	// goroutine that sits in the kernel for more than 20 µs.
	//
	// The cost: rdma_rxe of Linux 6.1 sends the packets inside the call, so it
	// lasts from 50 µs to many milliseconds. So long the processor (of
	// GOMAXPROCS) runs nothing else, and a goroutine that stops the world, as
	// the garbage collector does, waits for its end, and with it all goroutines
	// of the program. In an emulated guest the time to stop the world grew from
	// 12 µs to 0.4 ms in the median with messages of 64 bytes, and to 3.7 ms
	// with 512 KiB. It is for programs that post small messages from dedicated
	// goroutines.
	RawDoorbell bool
}
