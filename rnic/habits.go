package rnic

import "time"

// The constants by which goroutines share the work of a device. All of them
// were chosen by measuring ping-pongs and streams of messages between two
// processes on two cores; docs/design/progress.md says what each mechanism is.

// Polling.
const (
	// spinning is the number of polls without an Arm between them after which a
	// program counts as polling. A program that waits polls twice or so.
	spinning = 32
	// stampEvery is how many polls without anything share a look at the clock.
	stampEvery = 4
	// yieldEvery and goschedEvery are the numbers of polls in vain after which
	// other threads and other goroutines get the processor: the program may be
	// waiting for their work.
	yieldEvery   = 16
	goschedEvery = 512
	// pollPause is how long a program that polls or leads may do something else
	// before the listener takes over.
	pollPause = time.Millisecond
)

// Leading.
const (
	// prompt bounds the time from the end of a wait to the next one of a
	// streak. With 100 µs a stream of 1 MiB messages through a ring of 256 KiB
	// waited for events, and had 0.6 of its bandwidth.
	prompt = time.Millisecond
	// leadAfter is the number of prompt waits in a row before a program may
	// lead.
	leadAfter = 8
	// eager caps the streak of prompt waits; a late wait subtracts late from
	// it.
	eager = 4 * leadAfter
	late  = 8
	// rivalry is the number of waits without a leader after two programs wanted
	// to lead: with several, events are fairer.
	rivalry = 128
)

// Adaptive spinning: before blocking, spin up to spinFor if recent spins found
// a packet. A packet that comes at once then finds the receiver awake, which
// spares both sides the wake-up. Otherwise a spin is tried once in a while.
const (
	spinFor    = 25 * time.Microsecond
	spinTurns  = 128 // looks at most, where time stands still
	spinRetry  = 1   // waits without a spin after one in vain; twice as many each time
	spinRarely = 8   // the most waits without
)

// A processor that other threads want.
const (
	// longYield is longer than a peer on the same processor takes: a thread
	// that kept the processor so long has work for its whole time slice.
	longYield = time.Millisecond
	// contendedFor is the number of spins left out then. A spin too many costs
	// a time slice: with 512 p99.9 of ping-pongs was twice what it is.
	contendedFor = 4096
	// dozeFor is the time that a polling program sleeps instead of spinning,
	// unless a packet arrives: the scheduler prefers a thread that slept to one
	// that spins.
	dozeFor = 50 * time.Microsecond
)

// sleepFor is the time that a program which leads sleeps on the socket before
// it is parked in the netpoller, which costs more switches of threads: beside
// spinning processes 11 µs instead of 18 for half a round trip, and a tenth of
// the processor time. It is shorter than what makes the Go runtime take the
// processor from a thread in a system call when nothing else wants it, 10 ms,
// and longer than the kernel's tick, so that it needs no timer of its own.
const sleepFor = 8 * time.Millisecond

// napFor is the same where the program has one processor.
const napFor = 100 * time.Microsecond

// Doorbell batching.
const (
	// streamGap is the longest pause between two doorbells of a stream.
	streamGap = 5 * time.Microsecond
	// A queue pair streams once its score reaches streamAfter: +1 for a
	// doorbell within streamGap, -streamPause otherwise; streamEver caps it.
	streamAfter = 8
	streamEver  = 64
	streamPause = 4
	// streamMost is the most notes that wait.
	streamMost = 32
	// noteRounds is how many times a goroutine that gives the device up serves
	// the notes of others; then the worker does.
	noteRounds = 4
)
