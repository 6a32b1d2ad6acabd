// Package drive decides which goroutine works for a soft device, and when: its
// listener, a program that polls, or a program that waits.
//
// It knows neither packets nor queue pairs. A Driver has a link, on which it
// waits, and an Engine, which it tells to receive and to send what it has
// postponed. So the choice of the goroutine is explored and tested without a
// device.
//
// # How a packet meets it
//
//	listener   waits in the netpoller, receives until the link is empty, spins
//	           for a moment, sends the acknowledgements that are held
//	           (listener.go)
//	poller     a program that polls an empty completion queue: Progress receives
//	           and keeps the listener away (poller.go)
//	leader     a program that waits for completion after completion: Lead waits
//	           for the link in the listener's place (leader.go)
//	attendant  a program that waits for an event in the kernel: Attend leads as
//	           long as there is none, for a moment at most (attend.go)
//
// The goroutine that answers for the next packet is one word with a table of
// moves (owner.go). Before a receiver blocks it spins for a moment, if recent
// spins have paid and no other thread wants the processor (spin.go). The
// constants stand in habits.go, and docs/design/progress.md says what each
// mechanism pays.
//
// # Words
//
// They are those of the other places where goroutines share the work of one
// that reads (uapi/msgring/core, uapi/rpc/session).
//
//	claim      ask for the right to wait for the link
//	grant      leave that right to the goroutine that has claimed it
//	withdraw   claim it no more
//	lead       work in the place of the goroutine whose work it is
//	leave      give the right back, after leading
//	park       let the goroutine whose work it is sleep, as others lead or poll
//	resume     take the right back from programs that stay away
//	rouse      make a goroutine that waits look again
//	enlist     have the listener resume for a program that is about to wait
//	interrupt  end a Wait for the link
//	summon     have the listener resume at once, for a moment
//	trial      rounds of long spins, for as long as they pay
//	cede       let other goroutines have the processor
package drive
