// SPDX-License-Identifier: GPL-2.0-only
/*
 * THRESHOLDS_SET, THRESHOLDS_DEL and THRESHOLDS_GET of the family in netlink.c.
 */
#include <linux/ktime.h>
#include <linux/slab.h>
#include <net/genetlink.h>
#include <net/sock.h>

#include "netlink_gen.h"
#include "thresholds.h"
#include "weft.h"

static int read_thresholds(const struct nlattr *nest, struct weft_thresholds *to,
			   struct netlink_ext_ack *extack)
{
	unsigned int classes = weft_class_count();
	const struct nlattr *attr;
	int rem;

	nla_for_each_nested(attr, nest, rem) {
		u64 bytes;

		if (nla_type(attr) != WEFT_A_THRESHOLD) {
			NL_SET_ERR_MSG_ATTR(extack, attr,
					    "only THRESHOLD may be in THRESHOLDS");
			return -EINVAL;
		}
		if (to->count == WEFT_THRESHOLDS_MAX) {
			NL_SET_ERR_MSG_ATTR(extack, attr, "more than 6 thresholds");
			return -E2BIG;
		}
		bytes = nla_get_u64(attr);
		if (to->count && bytes <= to->most_bytes[to->count - 1]) {
			NL_SET_ERR_MSG_ATTR(extack, attr,
					    "thresholds have to rise");
			return -EINVAL;
		}
		to->most_bytes[to->count++] = bytes;
	}
	if (!to->count) {
		NL_SET_ERR_MSG_ATTR(extack, nest, "no threshold");
		return -EINVAL;
	}
	if (classes && to->count != classes - 2) {
		NL_SET_ERR_MSG_ATTR_FMT(extack, nest,
					"%u thresholds make %u classes, and weft_priorities is %u",
					to->count, to->count + 2, classes);
		return -EINVAL;
	}
	return 0;
}

int weft_nl_thresholds_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct weft_thresholds *ones;
	int err;

	if (GENL_REQ_ATTR_CHECK(info, WEFT_A_VERSION) ||
	    GENL_REQ_ATTR_CHECK(info, WEFT_A_TTL_NS) ||
	    GENL_REQ_ATTR_CHECK(info, WEFT_A_THRESHOLDS))
		return -EINVAL;

	ones = kzalloc(sizeof(*ones), GFP_KERNEL_ACCOUNT);
	if (!ones)
		return -ENOMEM;
	ones->version = nla_get_u64(info->attrs[WEFT_A_VERSION]);
	ones->ttl_ns = nla_get_u64(info->attrs[WEFT_A_TTL_NS]);
	err = read_thresholds(info->attrs[WEFT_A_THRESHOLDS], ones, info->extack);
	if (!err) {
		err = weft_thresholds_set(genl_info_net(info), ones);
		if (err == -ESTALE)
			NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[WEFT_A_VERSION],
					    "thresholds of a newer version have not expired yet");
	}
	if (err)
		kfree(ones);
	return err;
}

int weft_nl_thresholds_del_doit(struct sk_buff *skb, struct genl_info *info)
{
	weft_thresholds_clear(genl_info_net(info));
	return 0;
}

static int put_thresholds(struct sk_buff *skb, const struct weft_thresholds *ones)
{
	struct nlattr *nest;
	unsigned int i;

	if (nla_put_u64_64bit(skb, WEFT_A_VERSION, ones->version, WEFT_A_PAD) ||
	    nla_put_u64_64bit(skb, WEFT_A_TTL_NS, ones->ttl_ns, WEFT_A_PAD) ||
	    nla_put_u64_64bit(skb, WEFT_A_AGE_NS, ktime_get_ns() - ones->set_ns,
			      WEFT_A_PAD))
		return -EMSGSIZE;
	nest = nla_nest_start(skb, WEFT_A_THRESHOLDS);
	if (!nest)
		return -EMSGSIZE;
	for (i = 0; i < ones->count; i++)
		if (nla_put_u64_64bit(skb, WEFT_A_THRESHOLD, ones->most_bytes[i],
				      WEFT_A_PAD))
			return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

int weft_nl_thresholds_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct weft_thresholds ones;
	void *header;

	if (cb->args[0] || !weft_thresholds_copy(sock_net(skb->sk), &ones))
		return 0;
	header = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
			     &weft_nl_family, NLM_F_MULTI, WEFT_CMD_THRESHOLDS_GET);
	if (!header || put_thresholds(skb, &ones))
		return -EMSGSIZE;
	genlmsg_end(skb, header);
	cb->args[0] = 1;
	return skb->len;
}
