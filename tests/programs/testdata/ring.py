"""ring.c in Python, with pyverbs."""
import sys

from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CompChannel, CQ
from pyverbs.device import Context
import pyverbs.enums as e
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import RecvWR, SendWR, SGE

SIZE = 64  # of a message
name, turns = sys.argv[1], int(sys.argv[2])
context = Context(name='rxe0')
pd = PD(context)
mr = MR(pd, 2 * SIZE, e.IBV_ACCESS_LOCAL_WRITE)
channel = CompChannel(context)
cq = CQ(context, 8, None, channel)
left, right = (QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(1, 1, 1, 1, 0))) for _ in range(2))


def join(qp, qpn, psn):
    gid = context.query_gid(port_num=1, index=0)
    attr = QPAttr(port_num=1)
    attr.dest_qp_num, attr.rq_psn, attr.path_mtu = qpn, psn, e.IBV_MTU_1024
    attr.min_rnr_timer, attr.timeout, attr.retry_cnt, attr.rnr_retry = 1, 14, 7, 7
    attr.ah_attr = AHAttr(gr=GlobalRoute(dgid=gid, sgid_index=0), is_global=1, port_num=1)
    qp.to_rts(attr)


def reap(n):
    while True:
        cq.req_notify()
        got, wcs = cq.poll(n)
        for wc in wcs:
            assert wc.status == e.IBV_WC_SUCCESS, wc
        n -= got
        if n == 0:
            return
        channel.get_cq_event(cq)
        cq.ack_events(1)


def turn(text):
    mr.write(text.ljust(SIZE, '\0'), SIZE)
    left.post_recv(RecvWR(sg=[SGE(mr.buf + SIZE, SIZE, mr.lkey)], num_sge=1))
    right.post_send(SendWR(sg=[SGE(mr.buf, SIZE, mr.lkey)], num_sge=1, opcode=e.IBV_WR_SEND))
    reap(2)
    return mr.read(SIZE, SIZE).decode().rstrip('\0')


print(f'ready\n{left.qp_num} 0 {right.qp_num} 0', flush=True)
ends = [int(word) for word in input().split()]
join(left, *ends[:2])
join(right, *ends[2:])
print('joined', flush=True)
input()
for i in range(turns):
    text = turn((text if i % 4 else '') + name)
print(text)
