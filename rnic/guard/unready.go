package guard

import "github.com/rdmashim/rdmashim/rnic/engine"

// longWait is how long a message waits for a receive of the peer's before that
// is logged: with the default RNR retry count, 7, it waits for ever, and a
// program that forgot to post receives sees nothing else.
const longWait = engine.Second

// Unready bounds the log lines about messages that wait for a receive: each
// wait has one at most, and all queue pairs of a device one a second.
type Unready struct {
	logged engine.Time // when Log asked for a line last; 0: never
}

// Log reports whether a wait that has lasted so long is to be logged. logged is
// the queue pair's: the wait that goes on was logged.
func (u *Unready) Log(now engine.Time, long engine.Duration, logged *bool) bool {
	if long < longWait {
		*logged = false
	} else if !*logged && mayLog(now, &u.logged) {
		*logged = true
		return true
	}
	return false
}
