package cm

import "reflect"

// Counters of a manager. They only grow.
type Counters struct {
	Received      uint64 `name:"cm_rcvd_mads"`     // datagrams
	Requests      uint64 `name:"cm_requests"`      // connections asked for
	RequestsRcvd  uint64 `name:"cm_rcvd_requests"` // reported to programs
	Replies       uint64 `name:"cm_replies"`       // connections that the active side got
	Accepted      uint64 `name:"cm_accepted"`      // that the passive side got
	RejectsSent   uint64 `name:"cm_rejects"`
	RejectsRcvd   uint64 `name:"cm_rcvd_rejects"`
	Questions     uint64 `name:"cm_sidr_requests"`      // SIDR_REQs of programs
	QuestionsRcvd uint64 `name:"cm_rcvd_sidr_requests"` // reported to programs
	Answers       uint64 `name:"cm_sidr_replies"`       // SIDR_REPs, repeated ones aside
	AnswersRcvd   uint64 `name:"cm_rcvd_sidr_replies"`
	Retries       uint64 `name:"cm_retries"`        // messages repeated
	Redirects     uint64 `name:"cm_redirects"`      // redirections followed
	Duplicates    uint64 `name:"cm_duplicates"`     // messages that had come before
	Timeouts      uint64 `name:"cm_timeouts"`       // peers given up
	Undelivered   uint64 `name:"cm_undelivered"`    // attempts that ended because their message was returned
	Stale         uint64 `name:"cm_stale"`          // connections found out to be dead by a new one
	LingerEvicted uint64 `name:"cm_linger_evicted"` // left TIMEWAIT before time, to keep its number bounded

	DropLength    uint64 `name:"cm_drop_length"`    // datagrams that are not 256 bytes
	DropClass     uint64 `name:"cm_drop_class"`     // of another class, version or method
	DropAttribute uint64 `name:"cm_drop_attribute"` // of a message that is not spoken here
	DropUnknown   uint64 `name:"cm_drop_unknown"`   // for connections that are not there
	DropPeer      uint64 `name:"cm_drop_peer"`      // from an address that is not the peer's
	DropState     uint64 `name:"cm_drop_state"`     // in a state that has no use for them
	DropQPN       uint64 `name:"cm_drop_qpn"`       // with a queue pair number that is none or another one's
	DropBacklog   uint64 `name:"cm_drop_backlog"`   // requests that a listener did not take: it was full, or their address had its share
	DropSuspect   uint64 `name:"cm_drop_suspect"`   // requests that would end a connection whose peer lives, or is being asked
	Held          uint64 `name:"cm_held"`           // requests for services that have just lost their listener
	DropGrace     uint64 `name:"cm_drop_grace"`     // requests for services that may be listened for soon
}

// Each gives the counters to tell with their names, always in the same order.
func (c *Counters) Each(tell func(name string, value uint64)) {
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		tell(v.Type().Field(i).Tag.Get("name"), v.Field(i).Uint())
	}
}
