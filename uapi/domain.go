package uapi

import (
	"errors"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// domain is a protection domain that CreatePD made.
type domain struct {
	device *Device
	handle PD
	verbs  *verbs.PD
	made   origin
}

// CreatePD creates a protection domain (IBA vol. 1, 10.2.3). A queue pair
// reaches only the memory regions of its own domain: a peer that learns or
// guesses the key of a region in another one gets WCRemAccessErr. Queue pairs
// take their domain from QPConfig.PD, regions from MRConfig.PD, address handles
// from AHConfig.PD; 0 is the device's own domain.
//
// A program with several peers that must not see each other's memory gives each
// peer a domain. Memory that all of them share is registered once in each.
//
// Errors: ENOMEM when the device has no room.
func (d *Device) CreatePD() (PD, error) {
	pd, err := d.createPD()
	return pd, opError("CreatePD", "", err)
}

func (d *Device) createPD() (PD, error) {
	if d.closed.Load() {
		return -1, errDeviceClosed
	}
	v, err := d.verbs.AllocPD()
	if err != nil {
		return -1, d.ended(err, &d.closed, "")
	}
	p := &domain{device: d, verbs: v, made: caller()}
	return enter(d, &domainHandles, &d.domains, p, &p.handle, v.Dealloc)
}

// DestroyPD destroys a protection domain. EBUSY while a region, a queue pair or
// an address handle is in it, after which nothing has changed.
func (d *Device) DestroyPD(pd PD) error { return opError("DestroyPD", pdName(pd), d.destroyPD(pd)) }

func (d *Device) destroyPD(pd PD) error {
	p, err := d.madeDomain(pd)
	if err != nil {
		return err
	}
	switch err := p.verbs.Dealloc(); {
	case errors.Is(err, syscall.EBUSY):
		return errs.Explain(syscall.EBUSY, "regions, queue pairs or address handles are in it; destroy them first")
	case err != nil: // of two that destroy it at once the later, or Close was faster
		return d.ended(err, &d.closed, "")
	}
	leave(d, &domainHandles, &d.domains, pd)
	return nil
}

// madeDomain is the domain behind a handle, or EBADF.
func (d *Device) madeDomain(pd PD) (*domain, error) {
	if p := domainHandles.Get(int(pd)); p != nil && p.device == d {
		return p, nil
	}
	return nil, d.badHandle("%s is no protection domain of this device: zero, destroyed, or another device's", pdName(pd))
}

// domain is the kernel's domain behind a handle: the device's own for 0.
func (d *Device) domain(pd PD) (*verbs.PD, error) {
	if pd == 0 {
		return d.pd, nil
	}
	p, err := d.madeDomain(pd)
	if err != nil {
		return nil, err
	}
	return p.verbs, nil
}

// otherDomain refuses an object that lies in another domain than the queue of
// the post. The device would refuse it too (IBA vol. 1, 11.6.2: LOC_PROT_ERR),
// and end the queue pair.
func otherDomain(object string, pd, queue PD) error {
	return errs.Explain(syscall.EINVAL, "%s is in %s, and the queue in %s: make both in one protection domain", object, pdName(pd), pdName(queue))
}
