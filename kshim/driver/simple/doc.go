// Package simple implements the part of a driver that software devices share:
// domains, regions with keys, completion queues and queue pairs with rxe's
// rings.
//
// It is no network card: it has no network, no receives and no address handles.
// A function of the device executes each work request when its doorbell rings,
// and returns the status; it finds the memory by Local and Remote. The example
// makes a device that carries out WRITEs with memmove.
//
// A work request flows: Doorbell copies it out of the send queue's ring, which
// the client may change at any time, decodes the copy, calls the function and
// puts a completion into the completion queue's ring, where the client polls.
package simple
