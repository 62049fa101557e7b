Feature: Every mailbox speaks A2A

  Any program that speaks A2A reaches any agent of the relay at that agent's own address, in whichever version it
  speaks, and whether or not the agent is awake. The agent runs no server: it reads its messages and answers.

  Rule: An agent is reached whether or not it is awake

    Background:
      Given a relay
      And the agents lulu@laptop and zhiwei@studio
      And a caller with the official A2A client, who knows where zhiwei is

    Scenario: A task waits for an agent that is away
      When the caller asks "几点了?" and does not wait
      Then the caller's task is submitted
      When 3 days pass
      And zhiwei finds "几点了?" in its mailbox
      And zhiwei answers "九点半。"
      Then the caller's task is completed, with "九点半。"

    Scenario: A waiting caller has the answer as soon as it is given
      When the caller asks "借我一把伞,好吗?" and waits
      And zhiwei finds "借我一把伞,好吗?" in its mailbox
      And zhiwei answers "拿去吧。"
      Then the caller is told that its task is completed, with "拿去吧。"

    Scenario: The caller watches the work as it goes on
      When the caller asks "写一份周报" and watches
      And zhiwei finds "写一份周报" in its mailbox
      And zhiwei works, and says "开始写"
      And zhiwei writes "第一段", "第二段", "第三段" into 周报.md
      And zhiwei answers "写好了"
      Then the caller sees these, and then the end
        | task     | submitted                  |
        | status   | working: 开始写            |
        | artifact | 周报.md: 第一段            |
        | artifact | 周报.md: + 第二段          |
        | artifact | 周报.md: + 第三段, the end |
        | status   | completed: 写好了          |

    Scenario: A stream that broke off goes on where it was, also at a relay that was restarted
      When a program asks zhiwei for "写一份月报" with plain HTTP, and watches
      And zhiwei finds "写一份月报" in its mailbox
      And zhiwei works, and says "开始写"
      Then the program sees these
        | task   | submitted       |
        | status | working: 开始写 |
      When the program's connection breaks
      And the relay is restarted
      And zhiwei writes "第一段", "第二段" into 月报.md
      And the program comes back, and says which event it saw last
      And zhiwei answers "写好了"
      Then the program sees these, and then the end
        | artifact | 月报.md: 第一段            |
        | artifact | 月报.md: + 第二段, the end |
        | status   | completed: 写好了          |

    Scenario: An agent that needs to know more asks the caller
      When the caller asks "订一个蛋糕" and waits
      And zhiwei finds "订一个蛋糕" in its mailbox
      And zhiwei wants to know "给几个人?"
      Then the caller is told that its task is input-required, with "给几个人?"
      When the caller adds "十二个人。" and waits
      And zhiwei finds "十二个人。" in its mailbox
      And zhiwei answers "订好了。"
      Then the caller is told that its task is completed, with "订好了。"

    Scenario: A short question may be answered with a message instead of a task
      When the caller asks "你好吗?" and waits
      And zhiwei finds "你好吗?" in its mailbox
      And zhiwei answers with a plain message "很好,谢谢!"
      Then the caller gets the message "很好,谢谢!", and no task

    Scenario: A caller that changed its mind cancels, even in the middle of the work
      When the caller asks "Research the history of tea" and does not wait
      And zhiwei finds "Research the history of tea" in its mailbox
      And worker anna of zhiwei took the message
      And the caller cancels its task
      Then the caller's task is canceled
      When anna tries to finish with "Tea was first ..."
      Then the relay refuses, because the task was canceled

    Scenario: A task that was never given is not there
      When the caller asks for the task "no-such-task"
      Then the caller is told that there is no such task

  Rule: A caller that cannot wait is called

    Scenario: The end of a task is pushed to the caller, with the token it gave
      Given a relay that may call servers on this machine
      And the agents lulu@laptop and zhiwei@studio
      And a caller with the official A2A client, who knows where zhiwei is
      When the caller asks "把这本书译成中文" and wants to be called, with the token "season-7"
      And zhiwei finds "把这本书译成中文" in its mailbox
      And zhiwei answers "译完了。"
      Then the caller's server is told that the task is completed, with "译完了。" and the token "season-7"

  Rule: Old clients and new ones understand the same agent

    Background:
      Given a relay
      And the agents lulu@laptop and zhiwei@studio

    Scenario Outline: A client is answered in the version in which it asked
      When a client of A2A <version> asks zhiwei "翻译: good morning"
      And zhiwei finds "翻译: good morning" in its mailbox
      And zhiwei answers "早上好"
      Then the client reads <state>, with <part>

      Examples:
        | version | state                | part                               |
        | 1.0     | TASK_STATE_COMPLETED | {"text": "早上好"}                 |
        | 0.3     | completed            | {"kind": "text", "text": "早上好"} |
        | 0.2     | completed            | {"kind": "text", "text": "早上好"} |

    Scenario: A client of A2A 0.1 names its task itself, and is answered at once
      When a client of A2A 0.1 gives zhiwei the task order-7: "订一壶龙井"
      Then the client reads that order-7 is submitted
      When zhiwei finds "订一壶龙井" in its mailbox
      And zhiwei answers "泡好了。"
      And the client of A2A 0.1 asks zhiwei for the task order-7
      Then the client reads that order-7 is completed
      And the client reads completed, with {"type": "text", "text": "泡好了。"}

    Scenario: An unknown version is refused
      When a client of A2A 9.9 asks zhiwei "Are you from the future?"
      Then the client is told that this version is not served
      And zhiwei has 0 messages

  Rule: A caller that knows only the relay finds its way

    Background:
      Given a relay
      And the agents lulu@laptop and zhiwei@studio
      And a caller with the official A2A client, who knows where the relay is

    Scenario: The relay passes a message on to the agent that it names
      When the caller asks the relay to pass "在吗?" on to zhiwei@studio
      And zhiwei finds "在吗?" in its mailbox
      And zhiwei answers "在。"
      Then the caller is told that its task is completed, with "在。"

    Scenario: The relay itself knows who can do what
      Given an agent mei@chengdu that can "翻译合同"
      When the caller asks the relay "谁会翻译合同?"
      Then the relay names mei@chengdu, and where it is reached
      When the caller goes there and asks "请翻译这份合同", and does not wait
      Then mei@chengdu has 1 message

    Scenario: Cards tell where an agent is reached, in new and old words, and are sent only when they changed
      When a caller asks for zhiwei's card at agent-card.json
      Then it is a card of A2A 1.0 that leads to zhiwei's address at the relay
      When a caller asks for zhiwei's card at agent.json
      Then it is a card of A2A 0.3 that leads to zhiwei's address at the relay
      When a caller who has that card asks for it again
      Then the relay says that it has not changed

  Rule: A task is visible to its sender and its worker only

    Background:
      Given a relay that asks for keys
      And the agents lulu@laptop, zhiwei@studio and kames@desk with their own keys
      And lulu asked zhiwei over A2A, with its own key: "替我保密"

    Scenario: Another agent sees nothing of a task that is not its own
      When kames asks zhiwei over A2A for lulu's task
      Then the caller is told that there is no such task
      And kames finds no own task at zhiwei
      And lulu finds its own task at zhiwei

    Scenario: A stranger is not answered at all
      When a caller without a key asks zhiwei over A2A for lulu's task
      Then the relay answers 401
