// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes into the DSCP of packets how much their connection has left to send, so that
 * switches serve those first that are nearest to their end. That is the order with the
 * shortest mean completion time (pFabric: Alizadeh et al., SIGCOMM 2013), with as many
 * classes as a switch has queues.
 *
 * What is left is what weft_size.c estimates. While its application waits to write more, a
 * connection will go on for as long as it has (PIAS: Bai et al., NSDI 2015): on top of what
 * is unsent, as much as was written counts. An application that knows what it has left to
 * write may set the class of that on its socket instead, before it writes. The thresholds are the
 * controller's, which sees how much is sent in which class, or built-in ones. What is sent
 * again because a subflow holds it up is urgent (class 0), for everything after it waits
 * for it. Switches see themselves that handshakes and ACKs are (priority.p4).
 *
 * The class is written when a scheduler gives a subflow a burst, and holds for what this
 * subflow sends until the next one. Data of a more urgent class would overtake what the
 * subflow has in queues, so they wait for it or go to another subflow.
 */
#include <linux/hash.h>
#include <linux/moduleparam.h>
#include <net/tcp.h>

#include "priority.h"
#include "thresholds.h"
#include "weft.h"

static unsigned int weft_priorities;
module_param(weft_priorities, uint, 0644);
MODULE_PARM_DESC(weft_priorities,
		 "all schedulers: number of classes, by what is left to send, that are written into DSCP, from 2 to 8; 0: none (0)");

/*
 * In kB, for eight classes. By a fluid model of links that serve classes without delay and
 * share evenly within each, mean completion times with these are 0 to 8 percent above those
 * of shortest first, in Web Search, Data Mining, Cache Follower and Web Server traffic at
 * loads of 0.4 and 0.7 and in incasts of 225 kB. With thresholds that grow threefold from
 * 15 kB on they are 2 to 19 percent above: it is large connections that need classes.
 */
static unsigned int weft_thresholds_kb[WEFT_THRESHOLDS_MAX] = {
	130, 250, 1000, 2000, 5000, 12000
};
module_param_array(weft_thresholds_kb, uint, NULL, 0644);
MODULE_PARM_DESC(weft_thresholds_kb,
		 "all schedulers: kB left to send up to which a packet is in class 1, 2, ..., of eight, unless the controller says otherwise; of fewer classes, some of them count (130,250,1000,2000,5000,12000)");

static unsigned int weft_spread_percent = 85;
module_param(weft_spread_percent, uint, 0644);
MODULE_PARM_DESC(weft_spread_percent,
		 "all schedulers: what a message has left counts for its class as up to so many percent of a doubling more or less, drawn for each message, so that equal ones come after each other; 0: as it is; at most 1000 (85)");

static bool weft_drain = true;
module_param(weft_drain, bool, 0644);
MODULE_PARM_DESC(weft_drain,
		 "schedulers that decide packet by packet: a subflow whose packets wait in queues gets no data of a more urgent class, which would overtake them (1)");

/*
 * RTTs without an ACK after which they may overtake: packets of a low class can wait as long
 * as there are others, and TCP resends those that are overtaken in the class of the others.
 */
#define DRAIN_RTTS	4U

/*
 * Of a pool for local use (RFC 2474, section 6); dscp_of_class() in topology/model. A middlebox
 * that clears bits only makes packets less urgent.
 */
static u8 dscp_of_class(u8 class)
{
	return (WEFT_CLASSES_MAX - 1 - class) << 2 | 3;
}

/* Bits of the DSCP in a TOS byte or traffic class; the others are ECN's. */
#define DSCP_SHIFT	2
/* The queue of a host's interface has bands for these priorities of sockets. */
#define SK_PRIORITY(class)	(WEFT_CLASSES_MAX + (class))

/*
 * The socket is not locked. TCP sets the ECN bits with it locked, for every packet anew,
 * so they are right again in the next packet if both write at the same time.
 */
static void mark(struct sock *ssk, u8 class)
{
	u8 dscp = dscp_of_class(class) << DSCP_SHIFT;

	WRITE_ONCE(inet_sk(ssk)->tos,
		   (READ_ONCE(inet_sk(ssk)->tos) & INET_ECN_MASK) | dscp);
#if IS_ENABLED(CONFIG_IPV6)
	if (inet6_sk(ssk))
		WRITE_ONCE(inet6_sk(ssk)->tclass,
			   (READ_ONCE(inet6_sk(ssk)->tclass) & INET_ECN_MASK) | dscp);
#endif
	WRITE_ONCE(ssk->sk_priority, SK_PRIORITY(class));
}

/*
 * The class that an application which knows what it has left to write, this included, has
 * set on its socket (IP_TOS); 0 if it has set none.
 */
static u8 told_class(const struct sock *sk, unsigned int classes)
{
	u8 dscp = READ_ONCE(inet_sk(sk)->tos) >> DSCP_SHIFT;
	u8 class;

	for (class = 1; class < classes; class++)
		if (dscp == dscp_of_class(class))
			return class;
	return 0;
}

/*
 * Where the application has told a class, so much at least is left on top: what it told of
 * goes into the send buffer, where the kernel counts it.
 */
static u8 class_with(const struct net *net, u8 told, u64 bytes_left, unsigned int classes)
{
	u64 built_in[WEFT_THRESHOLDS_MAX];
	const struct weft_thresholds *ones;
	const u64 *most_bytes = built_in;
	u8 class;

	rcu_read_lock();
	ones = weft_thresholds_live(net, classes - 2);
	if (ones)
		most_bytes = ones->most_bytes;
	else
		weft_thresholds(built_in, weft_thresholds_kb, classes);
	if (told > 1)
		bytes_left += most_bytes[told - 2];
	class = max(told, weft_class_of(bytes_left, most_bytes, classes));
	rcu_read_unlock();
	return class;
}

/*
 * Connections with as much left as each other, as in an incast, would all be in one class and
 * share the link until the end, where all are late. One after the other, the last would end at
 * the same time and the mean at half of it. So a random factor puts them into neighbouring
 * classes. 85 percent of a doubling is less than the distance between two thresholds: most
 * connections whose order is wrong then could have been in one class before.
 *
 * The sequence numbers of a connection begin with a hash of a random key (RFC 8684, section
 * 3.1), so that of the first byte of a message is random enough.
 */
static u64 spread(const struct weft_size *size, u64 bytes_left)
{
	return weft_spread_left(bytes_left, hash_64(size->start_seq, 32),
				READ_ONCE(weft_spread_percent));
}

static u8 class_of(struct mptcp_sock *msk, unsigned int classes)
{
	struct weft_conn *conn = weft_conn(msk);
	struct weft_conn_view view = {
		.next_seq = msk->snd_nxt,
		.unsent_bytes = msk->write_seq - msk->snd_nxt,
		.now_us = div_u64(ktime_get_ns(), NSEC_PER_USEC),
		.app_is_blocked = weft_app_is_blocked(msk),
	};
	bool is_idle = weft_snd_una(msk) == msk->snd_nxt;
	u64 left = weft_size_left(&conn->size, &view, is_idle);
	u8 told = 0;

	if (!conn->size.is_complete)
		told = told_class((const struct sock *)msk, classes);
	if (told)
		left = view.unsent_bytes;
	else if (view.app_is_blocked)
		left += weft_size_written(&conn->size);
	return class_with(sock_net((const struct sock *)msk), told,
			  spread(&conn->size, left), classes);
}

/**
 * weft_class_count() - how many classes are written into DSCP
 *
 * Return: 0, or from 2 to WEFT_CLASSES_MAX.
 */
unsigned int weft_class_count(void)
{
	unsigned int classes = READ_ONCE(weft_priorities);

	return classes < 2 ? 0 : min(classes, WEFT_CLASSES_MAX);
}

/*
 * The class of what a subflow sent last, or WEFT_CLASSES_MAX if its priority is none of a class:
 * that of an application holds until there are data to mark.
 */
static u8 class_sent(const struct sock *ssk)
{
	u32 class = READ_ONCE(ssk->sk_priority) - SK_PRIORITY(0);

	return min_t(u32, class, WEFT_CLASSES_MAX);
}

/**
 * weft_goes_first() - whether a subflow's class is served before those of long foreign flows
 * @ssk: TCP socket of the subflow; not locked, so this is about recent data
 *
 * Leaves give flows of hosts that claim no class the last two, once they have sent more than
 * the first threshold.
 *
 * Return: false too if there are no classes.
 */
bool weft_goes_first(const struct sock *ssk)
{
	u8 class = class_sent(ssk);

	return class && class + 2 < weft_class_count();
}

/* Whether the subflow has had no ACK for so long that its packets are stuck in a queue. */
static bool is_stuck(const struct tcp_sock *tp)
{
	return tcp_clock_us() - tp->delivered_mstamp >
	       DRAIN_RTTS * (u64)(READ_ONCE(tp->srtt_us) >> 3);
}

/**
 * weft_would_overtake() - whether new data would overtake what a subflow has under way
 * @msk: connection with state
 * @ssk: TCP socket of the subflow; not locked, so this is an estimate
 *
 * They do when they are of a more urgent class and the others wait in queues. TCP takes
 * packets that are overtaken for lost after a quarter of the lowest RTT (RFC 8985, section
 * 6.2), resends them and shrinks its window: nine tenths of what was sent again in Web
 * Server traffic at a load of 0.7. Where packets wait for less than the lowest RTT, a pause
 * until they have arrived costs more than that. Nor do data wait for packets that are stuck.
 *
 * Return: true when the data should wait, or go to another subflow.
 */
bool weft_would_overtake(struct mptcp_sock *msk, const struct sock *ssk)
{
	const struct tcp_sock *tp = tcp_sk(ssk);
	unsigned int classes = weft_class_count();
	u8 class = class_sent(ssk);

	if (!classes || !READ_ONCE(weft_drain) || class >= WEFT_CLASSES_MAX)
		return false;
	if (READ_ONCE(tp->packets_out) == READ_ONCE(tp->sacked_out) ||
	    READ_ONCE(tp->srtt_us) >> 3 <= 2 * tcp_min_rtt(tp) || is_stuck(tp))
		return false;
	return class_of(msk, classes) < class;
}

/**
 * weft_mark_data() - write the class of new data into the packets of a subflow
 * @msk: connection with state
 * @ssk: TCP socket of the subflow that gets the data
 */
void weft_mark_data(struct mptcp_sock *msk, struct sock *ssk)
{
	unsigned int classes = weft_class_count();

	if (classes)
		mark(ssk, class_of(msk, classes));
}

/**
 * weft_mark_urgent() - make the packets of a subflow urgent until it gets new data
 * @ssk: TCP socket of the subflow
 */
void weft_mark_urgent(struct sock *ssk)
{
	if (weft_class_count())
		mark(ssk, 0);
}
