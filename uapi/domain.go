package uapi

import (
	"errors"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// domain is a protection domain that CreatePD made.
type domain struct {
	ctx    *Context
	handle PD
	verbs  *verbs.PD
	made   origin
}

// CreatePD creates a protection domain (IBA vol. 1, 10.2.3). A queue pair
// reaches only the memory regions of its own domain: a peer that learns or
// guesses the key of a region in another one gets WCRemAccessErr. Queue pairs
// take their domain from QPConfig.PD, regions from MRConfig.PD, address handles
// from AHConfig.PD; 0 is the context's own domain.
//
// A program with several peers that must not see each other's memory gives each
// peer a domain. Memory that all of them share is registered once in each.
//
// Errors: ENOMEM when the device has no room.
func (c *Context) CreatePD() (PD, error) {
	d, err := c.createPD()
	if err != nil {
		return -1, opError("CreatePD", "", err)
	}
	return d.handle, nil
}

func (c *Context) createPD() (*domain, error) {
	if c.closed.Load() {
		return nil, errContextClosed
	}
	v, err := c.verbs.AllocPD()
	if err != nil {
		return nil, c.ended(err, &c.closed, "")
	}
	d := &domain{ctx: c, verbs: v, made: caller()}
	if err := enter(c, &domainHandles, &c.domains, d, &d.handle, v.Dealloc); err != nil {
		return nil, err
	}
	return d, nil
}

// DestroyPD destroys a protection domain. EBUSY while a region, a queue pair or
// an address handle is in it, after which nothing has changed.
func (c *Context) DestroyPD(pd PD) error { return opError("DestroyPD", pdName(pd), c.destroyPD(pd)) }

func (c *Context) destroyPD(pd PD) error {
	d, err := c.madeDomain(pd)
	if err != nil {
		return err
	}
	switch err := d.verbs.Dealloc(); {
	case errors.Is(err, syscall.EBUSY):
		return errs.Explain(syscall.EBUSY, "regions, queue pairs or address handles are in it; destroy them first")
	case err != nil: // of two that destroy it at once the later, or Close was faster
		return c.ended(err, &c.closed, "")
	}
	leave(c, &domainHandles, &c.domains, pd)
	return nil
}

// madeDomain is the domain behind a handle, or EBADF.
func (c *Context) madeDomain(pd PD) (*domain, error) {
	if d := domainHandles.Get(int(pd)); d != nil && d.ctx == c {
		return d, nil
	}
	return nil, c.badHandle("%s is no protection domain of this context: zero, destroyed, or another context's", pdName(pd))
}

// domain is the kernel's domain behind a handle: the context's own for 0.
func (c *Context) domain(pd PD) (*verbs.PD, error) {
	if pd == 0 {
		return c.pd, nil
	}
	d, err := c.madeDomain(pd)
	if err != nil {
		return nil, err
	}
	return d.verbs, nil
}

// otherDomain refuses an object that lies in another domain than the queue of
// the post. The device would refuse it too (IBA vol. 1, 11.6.2: LOC_PROT_ERR),
// and end the queue pair.
func otherDomain(object string, pd, queue PD) error {
	return errs.Explain(syscall.EINVAL, "%s is in %s, and the queue in %s: make both in one protection domain", object, pdName(pd), pdName(queue))
}
