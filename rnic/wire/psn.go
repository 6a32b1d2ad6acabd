package wire

const mask24 = 1<<24 - 1

// PSN is a packet sequence number: 24 bits, which wrap (IBA 9.7.1). A PSN made
// by this package never has a bit above the 24th set, so == compares them.
type PSN uint32

// MaxPSN is the largest packet sequence number; the next one is 0.
const MaxPSN PSN = mask24

// Add returns the number n packets after p, or before it where n is negative.
func (p PSN) Add(n int) PSN { return (p + PSN(n)) & mask24 }

// Next returns p.Add(1).
func (p PSN) Next() PSN { return (p + 1) & mask24 }

// Sub returns the signed distance from q to p: the n in -2^23 … 2^23-1 with
// q.Add(n) == p.
func (p PSN) Sub(q PSN) int32 { return int32((p-q)<<8) >> 8 }

// Before reports whether p lies in the half of the sequence space before q.
func (p PSN) Before(q PSN) bool { return p.Sub(q) < 0 }

// After reports whether p lies in the half of the sequence space after q. Of
// the number exactly opposite, Before holds and After does not.
func (p PSN) After(q PSN) bool { return p.Sub(q) > 0 }

// In reports whether p is one of the n numbers that start with first; n is in
// 0 … 2^24.
func (p PSN) In(first PSN, n int) bool { return int((p-first)&mask24) < n }

// MSN is a message sequence number: 24 bits, which wrap. A responder counts the
// messages that it completed in it (IBA 9.7.7.1).
type MSN uint32

// Next returns the number after m.
func (m MSN) Next() MSN { return (m + 1) & mask24 }

// Sub returns the signed distance from q to m, as [PSN.Sub] does.
func (m MSN) Sub(q MSN) int32 { return int32((m-q)<<8) >> 8 }
