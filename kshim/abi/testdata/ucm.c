/*
 * Prints sizes, offsets and numbers of the rdma_cm interface from the installed headers, as layout.c does for uverbs. The
 * output is recorded in ucm.golden.
 */
#include <stddef.h>
#include <stdio.h>
#include <netinet/in.h>
#include <rdma/rdma_user_cm.h>

#define S(s) printf("struct %s %zu\n", #s, sizeof(struct s))
#define F(s, f) printf("field %s %s %zu %zu\n", #s, #f, offsetof(struct s, f), sizeof(((struct s *)0)->f))
#define E(e) printf("value %s %llu\n", #e, (unsigned long long)(e))

static void structs(void)
{
	S(rdma_ucm_cmd_hdr);
	F(rdma_ucm_cmd_hdr, cmd);
	F(rdma_ucm_cmd_hdr, in);
	F(rdma_ucm_cmd_hdr, out);
	S(rdma_ucm_create_id);
	F(rdma_ucm_create_id, uid);
	F(rdma_ucm_create_id, response);
	F(rdma_ucm_create_id, ps);
	F(rdma_ucm_create_id, qp_type);
	F(rdma_ucm_create_id, reserved);
	S(rdma_ucm_create_id_resp);
	F(rdma_ucm_create_id_resp, id);
	S(rdma_ucm_destroy_id);
	F(rdma_ucm_destroy_id, response);
	F(rdma_ucm_destroy_id, id);
	F(rdma_ucm_destroy_id, reserved);
	S(rdma_ucm_destroy_id_resp);
	F(rdma_ucm_destroy_id_resp, events_reported);
	S(rdma_ucm_bind);
	F(rdma_ucm_bind, id);
	F(rdma_ucm_bind, addr_size);
	F(rdma_ucm_bind, reserved);
	F(rdma_ucm_bind, addr);
	S(rdma_ucm_resolve_addr);
	F(rdma_ucm_resolve_addr, id);
	F(rdma_ucm_resolve_addr, timeout_ms);
	F(rdma_ucm_resolve_addr, src_size);
	F(rdma_ucm_resolve_addr, dst_size);
	F(rdma_ucm_resolve_addr, reserved);
	F(rdma_ucm_resolve_addr, src_addr);
	F(rdma_ucm_resolve_addr, dst_addr);
	S(rdma_ucm_resolve_route);
	F(rdma_ucm_resolve_route, id);
	F(rdma_ucm_resolve_route, timeout_ms);
	S(rdma_ucm_query);
	F(rdma_ucm_query, response);
	F(rdma_ucm_query, id);
	F(rdma_ucm_query, option);
	S(rdma_ucm_query_addr_resp);
	F(rdma_ucm_query_addr_resp, node_guid);
	F(rdma_ucm_query_addr_resp, port_num);
	F(rdma_ucm_query_addr_resp, reserved);
	F(rdma_ucm_query_addr_resp, pkey);
	F(rdma_ucm_query_addr_resp, src_size);
	F(rdma_ucm_query_addr_resp, dst_size);
	F(rdma_ucm_query_addr_resp, src_addr);
	F(rdma_ucm_query_addr_resp, dst_addr);
	F(rdma_ucm_query_addr_resp, ibdev_index);
	F(rdma_ucm_query_addr_resp, reserved1);
	S(rdma_ucm_query_path_resp);
	F(rdma_ucm_query_path_resp, num_paths);
	F(rdma_ucm_query_path_resp, reserved);
	S(rdma_ucm_conn_param);
	F(rdma_ucm_conn_param, qp_num);
	F(rdma_ucm_conn_param, qkey);
	F(rdma_ucm_conn_param, private_data);
	F(rdma_ucm_conn_param, private_data_len);
	F(rdma_ucm_conn_param, srq);
	F(rdma_ucm_conn_param, responder_resources);
	F(rdma_ucm_conn_param, initiator_depth);
	F(rdma_ucm_conn_param, flow_control);
	F(rdma_ucm_conn_param, retry_count);
	F(rdma_ucm_conn_param, rnr_retry_count);
	F(rdma_ucm_conn_param, valid);
	S(rdma_ucm_ud_param);
	F(rdma_ucm_ud_param, qp_num);
	F(rdma_ucm_ud_param, qkey);
	F(rdma_ucm_ud_param, ah_attr);
	F(rdma_ucm_ud_param, private_data);
	F(rdma_ucm_ud_param, private_data_len);
	F(rdma_ucm_ud_param, reserved);
	S(rdma_ucm_ece);
	F(rdma_ucm_ece, vendor_id);
	F(rdma_ucm_ece, attr_mod);
	S(rdma_ucm_connect);
	F(rdma_ucm_connect, conn_param);
	F(rdma_ucm_connect, id);
	F(rdma_ucm_connect, reserved);
	F(rdma_ucm_connect, ece);
	S(rdma_ucm_listen);
	F(rdma_ucm_listen, id);
	F(rdma_ucm_listen, backlog);
	S(rdma_ucm_accept);
	F(rdma_ucm_accept, uid);
	F(rdma_ucm_accept, conn_param);
	F(rdma_ucm_accept, id);
	F(rdma_ucm_accept, reserved);
	F(rdma_ucm_accept, ece);
	S(rdma_ucm_reject);
	F(rdma_ucm_reject, id);
	F(rdma_ucm_reject, private_data_len);
	F(rdma_ucm_reject, reason);
	F(rdma_ucm_reject, reserved);
	F(rdma_ucm_reject, private_data);
	S(rdma_ucm_disconnect);
	F(rdma_ucm_disconnect, id);
	S(rdma_ucm_init_qp_attr);
	F(rdma_ucm_init_qp_attr, response);
	F(rdma_ucm_init_qp_attr, id);
	F(rdma_ucm_init_qp_attr, qp_state);
	S(rdma_ucm_notify);
	F(rdma_ucm_notify, id);
	F(rdma_ucm_notify, event);
	S(rdma_ucm_get_event);
	F(rdma_ucm_get_event, response);
	S(rdma_ucm_event_resp);
	F(rdma_ucm_event_resp, uid);
	F(rdma_ucm_event_resp, id);
	F(rdma_ucm_event_resp, event);
	F(rdma_ucm_event_resp, status);
	F(rdma_ucm_event_resp, param);
	F(rdma_ucm_event_resp, reserved);
	F(rdma_ucm_event_resp, ece);
	S(rdma_ucm_set_option);
	F(rdma_ucm_set_option, optval);
	F(rdma_ucm_set_option, id);
	F(rdma_ucm_set_option, level);
	F(rdma_ucm_set_option, optname);
	F(rdma_ucm_set_option, optlen);
	S(rdma_ucm_migrate_id);
	F(rdma_ucm_migrate_id, response);
	F(rdma_ucm_migrate_id, id);
	F(rdma_ucm_migrate_id, fd);
	S(rdma_ucm_migrate_resp);
	F(rdma_ucm_migrate_resp, events_reported);
	S(rdma_ucm_join_mcast);
	F(rdma_ucm_join_mcast, response);
	F(rdma_ucm_join_mcast, uid);
	F(rdma_ucm_join_mcast, id);
	F(rdma_ucm_join_mcast, addr_size);
	F(rdma_ucm_join_mcast, join_flags);
	F(rdma_ucm_join_mcast, addr);
	S(ib_path_rec_data);
	F(ib_path_rec_data, flags);
	F(ib_path_rec_data, reserved);
	F(ib_path_rec_data, path_rec);
	S(ib_uverbs_qp_attr);
	F(ib_uverbs_qp_attr, qp_attr_mask);
	F(ib_uverbs_qp_attr, qp_state);
	F(ib_uverbs_qp_attr, cur_qp_state);
	F(ib_uverbs_qp_attr, path_mtu);
	F(ib_uverbs_qp_attr, path_mig_state);
	F(ib_uverbs_qp_attr, qkey);
	F(ib_uverbs_qp_attr, rq_psn);
	F(ib_uverbs_qp_attr, sq_psn);
	F(ib_uverbs_qp_attr, dest_qp_num);
	F(ib_uverbs_qp_attr, qp_access_flags);
	F(ib_uverbs_qp_attr, ah_attr);
	F(ib_uverbs_qp_attr, alt_ah_attr);
	F(ib_uverbs_qp_attr, max_send_wr);
	F(ib_uverbs_qp_attr, max_recv_wr);
	F(ib_uverbs_qp_attr, max_send_sge);
	F(ib_uverbs_qp_attr, max_recv_sge);
	F(ib_uverbs_qp_attr, max_inline_data);
	F(ib_uverbs_qp_attr, pkey_index);
	F(ib_uverbs_qp_attr, alt_pkey_index);
	F(ib_uverbs_qp_attr, en_sqd_async_notify);
	F(ib_uverbs_qp_attr, sq_draining);
	F(ib_uverbs_qp_attr, max_rd_atomic);
	F(ib_uverbs_qp_attr, max_dest_rd_atomic);
	F(ib_uverbs_qp_attr, min_rnr_timer);
	F(ib_uverbs_qp_attr, port_num);
	F(ib_uverbs_qp_attr, timeout);
	F(ib_uverbs_qp_attr, retry_cnt);
	F(ib_uverbs_qp_attr, rnr_retry);
	F(ib_uverbs_qp_attr, alt_port_num);
	F(ib_uverbs_qp_attr, alt_timeout);
	F(ib_uverbs_qp_attr, reserved);
}

static void numbers(void)
{
	E(RDMA_USER_CM_ABI_VERSION);
	E(RDMA_MAX_PRIVATE_DATA);
	E(RDMA_USER_CM_CMD_CREATE_ID);
	E(RDMA_USER_CM_CMD_DESTROY_ID);
	E(RDMA_USER_CM_CMD_BIND_IP);
	E(RDMA_USER_CM_CMD_RESOLVE_IP);
	E(RDMA_USER_CM_CMD_RESOLVE_ROUTE);
	E(RDMA_USER_CM_CMD_QUERY_ROUTE);
	E(RDMA_USER_CM_CMD_CONNECT);
	E(RDMA_USER_CM_CMD_LISTEN);
	E(RDMA_USER_CM_CMD_ACCEPT);
	E(RDMA_USER_CM_CMD_REJECT);
	E(RDMA_USER_CM_CMD_DISCONNECT);
	E(RDMA_USER_CM_CMD_INIT_QP_ATTR);
	E(RDMA_USER_CM_CMD_GET_EVENT);
	E(RDMA_USER_CM_CMD_GET_OPTION);
	E(RDMA_USER_CM_CMD_SET_OPTION);
	E(RDMA_USER_CM_CMD_NOTIFY);
	E(RDMA_USER_CM_CMD_JOIN_IP_MCAST);
	E(RDMA_USER_CM_CMD_LEAVE_MCAST);
	E(RDMA_USER_CM_CMD_MIGRATE_ID);
	E(RDMA_USER_CM_CMD_QUERY);
	E(RDMA_USER_CM_CMD_BIND);
	E(RDMA_USER_CM_CMD_RESOLVE_ADDR);
	E(RDMA_USER_CM_CMD_JOIN_MCAST);
	E(RDMA_PS_IPOIB);
	E(RDMA_PS_IB);
	E(RDMA_PS_TCP);
	E(RDMA_PS_UDP);
	E(RDMA_MC_JOIN_FLAG_FULLMEMBER);
	E(RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER);
	E(RDMA_USER_CM_QUERY_ADDR);
	E(RDMA_USER_CM_QUERY_PATH);
	E(RDMA_USER_CM_QUERY_GID);
	E(RDMA_OPTION_ID);
	E(RDMA_OPTION_IB);
	E(RDMA_OPTION_ID_TOS);
	E(RDMA_OPTION_ID_REUSEADDR);
	E(RDMA_OPTION_ID_AFONLY);
	E(RDMA_OPTION_ID_ACK_TIMEOUT);
	E(RDMA_OPTION_IB_PATH);
	E(AF_INET);
	E(AF_INET6);
}

int main(void)
{
	structs();
	numbers();
	printf("struct sockaddr_in %zu\n", sizeof(struct sockaddr_in));
	printf("struct sockaddr_in6 %zu\n", sizeof(struct sockaddr_in6));
	F(sockaddr_in, sin_port);
	F(sockaddr_in, sin_addr);
	F(sockaddr_in6, sin6_port);
	F(sockaddr_in6, sin6_addr);
	F(sockaddr_in6, sin6_scope_id);
	return 0;
}
