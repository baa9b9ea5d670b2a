/* client/session/news.h - the part of a session's news that only session.c may touch.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_NEWS_H
#define SESSION_NEWS_H

#include "session/session.h"

void news_replay(struct mesh_session *s); /* the table of peers stands now: tell what came before it */
void news_fini(struct mesh_session *s);

#endif
