package verbs

import "github.com/rdmashim/rdmashim/kshim/abi"

// provider holds the parts that depend on the driver: the private part of its
// create commands and the queues in shared memory. It has the hooks at which
// drivers differ: before a create command (a driver may want buffers that user
// space made), after it (rxe's queues are mapped then), and the queues
// themselves, as concrete types, because a call through an interface would move
// every caller's work request to the heap. A second driver makes sendQueue,
// recvQueue and compQueue a switch.
type provider interface {
	driver() abi.DriverID
	// createCQ makes a completion queue and opens its ring.
	createCQ(c *commander, req *abi.CreateCQ) (uint32, *compQueue, error)
	// resizeCQ gives a completion queue another ring and opens it. A *ringLost
	// if the queue has it and it could not be opened.
	resizeCQ(c *commander, req *abi.ResizeCQ) (*compQueue, error)
	// createAH makes an address handle and tells the number by which work
	// requests name it.
	createAH(c *commander, req *abi.CreateAH) (handle, num uint32, err error)
	// createSRQ makes a shared receive queue and opens its ring.
	createSRQ(c *commander, req *abi.CreateSRQ) (abi.CreateSRQResp, *recvQueue, error)
	// modifySRQ changes its limit.
	modifySRQ(c *commander, req *abi.ModifySRQ) error
	// createQP makes a queue pair and opens its rings. The one of receives is
	// nil if it shares them.
	createQP(c *commander, req *abi.CreateQP) (abi.CreateQPResp, *sendQueue, *recvQueue, error)
}

// providerFor chooses the driver's provider. GET_CONTEXT then names the driver
// to the kernel, which refuses a wrong one.
func providerFor(info DeviceInfo) (provider, error) {
	if info.Driver == abi.DriverRXE && info.ABIVersion >= abi.RXEABIVersionMin && info.ABIVersion <= abi.RXEABIVersionMax {
		return rxe{}, nil
	}
	return nil, notSpoken(info)
}
