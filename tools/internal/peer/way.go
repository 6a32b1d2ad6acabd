package peer

import "github.com/rdmashim/rdmashim/uapi"

// Way is how a connected queue pair sends: "shm", through shared memory, or
// "net"; empty where the device does not tell.
func Way(c *uapi.Device, qp uapi.QP) string {
	d, _ := c.Stats()
	for i := range d.QueuePairs {
		if q := &d.QueuePairs[i]; q.QPN == uint32(qp) {
			return q.Way
		}
	}
	return ""
}

// ChosenWay says in words why a way was chosen, and how to choose another.
func ChosenWay(way string) string {
	if way == "shm" {
		return "shared memory, since both are on this host; shm=off sends packets"
	}
	return "packets over the network"
}
