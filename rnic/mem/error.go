package mem

// Error says why memory could not be reached. Values are comparable and small:
// returning one allocates nothing.
type Error uint8

const (
	// ErrKey: no region has the key, or one had it and is gone.
	ErrKey Error = iota + 1
	// ErrPD: the region belongs to another protection domain.
	ErrPD
	// ErrAccess: the region's access flags forbid it.
	ErrAccess
	// ErrBounds: the range leaves the region or wraps the address space.
	ErrBounds
	// ErrAlign: an atomic's address is not a multiple of eight.
	ErrAlign
	// ErrFault: the region is registered but its memory is gone.
	ErrFault
	// ErrWindow: memory windows are bound to the region.
	ErrWindow
	// ErrLength: the scatter list is shorter than what goes into it.
	ErrLength
)

var errorText = [...]string{
	ErrKey:    "no region has this key",
	ErrPD:     "the region is in another protection domain",
	ErrAccess: "the region does not permit this access",
	ErrBounds: "the range leaves the region",
	ErrAlign:  "the address of an atomic is not a multiple of 8",
	ErrFault:  "the region's memory is not there any more",
	ErrWindow: "memory windows are bound to the region",
	ErrLength: "the scatter list is too short",
}

// Error implements the error interface.
func (e Error) Error() string { return "mem: " + errorText[e] }
