package cm

// Counters of a manager. They only grow.
type Counters struct {
	Received                 uint64 // datagrams
	Requests, RequestsRcvd   uint64 // connections asked for, and reported as asked for
	Replies, Accepted        uint64 // connections that the active, the passive side got
	RejectsSent, RejectsRcvd uint64
	Questions, QuestionsRcvd uint64 // SIDR_REQs of programs, and those reported to programs
	Answers, AnswersRcvd     uint64 // SIDR_REPs, repeated ones aside
	Retries                  uint64 // messages repeated
	Redirects                uint64 // redirections followed
	Duplicates               uint64 // messages that had come before
	Timeouts                 uint64 // peers given up
	Undelivered              uint64 // attempts that ended because their message was returned
	Stale                    uint64 // connections found out to be dead by a new one
	LingerEvicted            uint64 // left TIMEWAIT before time, to keep its number bounded

	DropLength    uint64 // datagrams that are not 256 bytes
	DropClass     uint64 // of another class, version or method
	DropAttribute uint64 // of a message that is not spoken here
	DropUnknown   uint64 // for connections that are not there
	DropPeer      uint64 // from an address that is not the peer's
	DropState     uint64 // in a state that has no use for them
	DropQPN       uint64 // with a queue pair number that is none or another one's
	DropBacklog   uint64 // requests that a listener did not take: it was full, or their address had its share
	DropSuspect   uint64 // requests that would end a connection whose peer lives, or is being asked
	Held          uint64 // requests for services that have just lost their listener
	DropGrace     uint64 // requests for services that may be listened for soon
}

var counterTable = []struct {
	name  string
	field func(*Counters) *uint64
}{
	{"cm_rcvd_mads", func(c *Counters) *uint64 { return &c.Received }},
	{"cm_requests", func(c *Counters) *uint64 { return &c.Requests }},
	{"cm_rcvd_requests", func(c *Counters) *uint64 { return &c.RequestsRcvd }},
	{"cm_replies", func(c *Counters) *uint64 { return &c.Replies }},
	{"cm_accepted", func(c *Counters) *uint64 { return &c.Accepted }},
	{"cm_rejects", func(c *Counters) *uint64 { return &c.RejectsSent }},
	{"cm_rcvd_rejects", func(c *Counters) *uint64 { return &c.RejectsRcvd }},
	{"cm_sidr_requests", func(c *Counters) *uint64 { return &c.Questions }},
	{"cm_rcvd_sidr_requests", func(c *Counters) *uint64 { return &c.QuestionsRcvd }},
	{"cm_sidr_replies", func(c *Counters) *uint64 { return &c.Answers }},
	{"cm_rcvd_sidr_replies", func(c *Counters) *uint64 { return &c.AnswersRcvd }},
	{"cm_retries", func(c *Counters) *uint64 { return &c.Retries }},
	{"cm_redirects", func(c *Counters) *uint64 { return &c.Redirects }},
	{"cm_duplicates", func(c *Counters) *uint64 { return &c.Duplicates }},
	{"cm_timeouts", func(c *Counters) *uint64 { return &c.Timeouts }},
	{"cm_undelivered", func(c *Counters) *uint64 { return &c.Undelivered }},
	{"cm_stale", func(c *Counters) *uint64 { return &c.Stale }},
	{"cm_linger_evicted", func(c *Counters) *uint64 { return &c.LingerEvicted }},
	{"cm_drop_length", func(c *Counters) *uint64 { return &c.DropLength }},
	{"cm_drop_class", func(c *Counters) *uint64 { return &c.DropClass }},
	{"cm_drop_attribute", func(c *Counters) *uint64 { return &c.DropAttribute }},
	{"cm_drop_unknown", func(c *Counters) *uint64 { return &c.DropUnknown }},
	{"cm_drop_peer", func(c *Counters) *uint64 { return &c.DropPeer }},
	{"cm_drop_state", func(c *Counters) *uint64 { return &c.DropState }},
	{"cm_drop_qpn", func(c *Counters) *uint64 { return &c.DropQPN }},
	{"cm_drop_backlog", func(c *Counters) *uint64 { return &c.DropBacklog }},
	{"cm_drop_suspect", func(c *Counters) *uint64 { return &c.DropSuspect }},
	{"cm_held", func(c *Counters) *uint64 { return &c.Held }},
	{"cm_drop_grace", func(c *Counters) *uint64 { return &c.DropGrace }},
}

// Each tells the counters with their names, always in the same order.
func (c *Counters) Each(tell func(name string, value uint64)) {
	for _, e := range counterTable {
		tell(e.name, *e.field(c))
	}
}
