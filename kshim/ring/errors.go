package ring

import "syscall"

// Error is a fault of a queue or of an element. errors.Is(err, syscall.EINVAL)
// holds for each.
type Error string

func (e Error) Error() string { return "ring: " + string(e) }

// Is reports that every Error is EINVAL.
func (e Error) Is(target error) bool { return target == syscall.EINVAL }

// The faults.
const (
	ErrMapping Error = "header does not fit the mapping"
	ErrIndex   Error = "index in shared memory lies beyond the ring"
	ErrSlot    Error = "slot is too small for the work request"
	ErrOpcode  Error = "unknown or unsupported work request opcode"
	ErrFlags   Error = "send flags are unknown or do not suit the opcode"
	ErrNumSGE  Error = "too many scatter/gather elements"
	ErrLength  Error = "length is not the sum of the scatter/gather list, or too long"
	ErrNoList  Error = "length without a scatter/gather list or inline data"
	ErrInline  Error = "inline data is longer than the slot, or given with a scatter/gather list"
	ErrState   Error = "work request is not in the state of one just posted"
)
