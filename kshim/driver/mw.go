package driver

// MWDevice is a Device with memory windows, which work requests bind to regions
// (IBA 10.6.7).
type MWDevice interface {
	// AllocMW makes a window that gives access to nothing: of type 1, or of
	// type 2, which serves the queue pair that bound it.
	AllocMW(pd PD, type2 bool) (MW, error)
}

type MW interface {
	RKey() uint32
	// Dealloc invalidates the key, bound or not. When it returns no packet
	// reaches memory by it.
	Dealloc() error
}
