package drive

import "time"

// The constants by which goroutines share the work of a device. All of them,
// and those of doorbells (rnic/stream.go), were chosen by measuring ping-pongs
// and streams of messages between two processes on two cores;
// docs/design/progress.md says what each mechanism is.

// Polling.
const (
	// spinning is the number of polls without an Arm between them after which a
	// program counts as polling. A program that waits polls twice or so.
	spinning = 32
	// yieldEvery and goschedEvery are the numbers of polls in vain after which
	// other threads and other goroutines get the processor: the program may be
	// waiting for their work. Threads get it after yieldAfter at the earliest:
	// polls of rings are fast, and an answer through them comes in 3 µs.
	yieldEvery   = 16
	yieldAfter   = 4 * time.Microsecond
	goschedEvery = 512
	// PollPause is how long a program that polls or leads may do something else
	// before the listener takes over.
	PollPause = time.Millisecond
	// stayFor is about a time slice, which a program that polls would take.
	stayFor = 4 * time.Millisecond
)

// Leading.
const (
	// prompt bounds the time from the end of a wait to the next one that may
	// lead. With 100 µs a stream of 1 MiB messages through a ring of 256 KiB
	// waited for events, and had 0.6 of its bandwidth.
	prompt = time.Millisecond
	// summonFor is longer than a peer of this host takes to answer, beside
	// others.
	summonFor = 2 * time.Millisecond
	// rivalry is the number of waits without a leader after two programs wanted
	// to lead: with several, events are fairer.
	rivalry = 128
	// cedeEvery is shorter than the 10 ms after which the Go runtime preempts a
	// goroutine that was not scheduled anew. Its monitor would also take the
	// processor from the thread in its next system call, and look for more of
	// the kind every 20 µs for a while: beside spinning processes that cost a
	// fifth of the processor time.
	cedeEvery = 5 * time.Millisecond
	// cedeMost is how often in a row a leader does so while others are ready: a
	// goroutine that it woke may yield itself, once, to gather more, as
	// grpc-go's writer does. With 1 that ran beside the leader's spin and
	// behind its acknowledgement, and a call by UDP took 145 µs, not 81.
	cedeMost = 3
	// A leader that found no other goroutine ready crowdFew times looks at each
	// crowdEvery-th time only.
	crowdFew, crowdEvery = 64, 16
)

// Adaptive spinning: before blocking, spin up to spinFor if the last packets
// came within spinWithin of those before. A packet that comes at once then
// finds the receiver awake, which spares both sides the wake-up.
const (
	spinFor    = 25 * time.Microsecond
	spinTurns  = 512 // looks at most, where time stands still
	spinWithin = time.Millisecond
	// spinLong is longer than a processor takes to wake on a host whose
	// hypervisor is slow at it. Such spins go on for as long as what one finds
	// costs spinWorth at most.
	spinLong  = 200 * time.Microsecond
	spinWorth = 60 * time.Microsecond
	// A round is trialSpins spins. After one with trialNear spins in vain that
	// long ones would not have been the next is a trial; after a trial that did
	// not pay trialMore times as many rounds as before, trialMost at most, are
	// none.
	trialSpins, trialNear = 16, 4
	trialMore, trialMost  = 4, 1024
)

// A processor that other threads want.
const (
	// longYield is longer than a peer on the same processor takes: a thread
	// that kept the processor so long has work for its whole time slice.
	longYield = time.Millisecond
	// contendedLeast is the number of spins left out then, and contendedMore
	// times as many, contendedMost at most, each time that less than
	// contendedLeast yields were short in between. A spin too many costs a time
	// slice: with 512 always, p99.9 of ping-pongs was twice as long. A spin too
	// few costs a wake-up: with 4096 always, a stream that another program had
	// disturbed once had 0.7 of its bandwidth for 0.2 s.
	contendedLeast = 256
	contendedMore  = 4
	contendedMost  = 4096
	// dozeFor is the time that a polling program sleeps instead of spinning,
	// unless a packet arrives: the scheduler prefers a thread that slept to one
	// that spins.
	dozeFor = 50 * time.Microsecond
)

// sleepFor is the time that a program which leads sleeps on the socket before
// it is parked in the netpoller, which costs more switches of threads: beside
// spinning processes 11 µs instead of 18 for half a round trip, and a tenth of
// the processor time. It is shorter than the 10 ms after which the Go runtime
// takes the processor from a thread in a system call when nothing else wants
// it, and longer than the kernel's tick, so that it needs no timer of its own.
const sleepFor = 8 * time.Millisecond

// napFor is the same where the program has one processor.
const napFor = 100 * time.Microsecond
