// Package handle finds objects by number, without a lock: Map by a number that
// its caller has, as a device has those of its queue pairs, Table by a handle
// that it hands out itself and that no later object gets.
//
// It knows nothing of the objects: of which kind they are, whose they are and
// how they end. A call of uapi looks its handle up here, then asks the object
// whether it belongs to the call's device.
package handle
