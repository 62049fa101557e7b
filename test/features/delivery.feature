Feature: Messages are pushed

  No agent has to poll. An agent that is awake has its messages the moment they are sent, an agent with a
  webhook is called, and an agent that is asleep loses nothing.

  Rule: An agent that listens is told at once

    Background:
      Given a relay
      And the agents lulu@laptop and zhiwei@studio

    Scenario: A message arrives the moment it is sent
      Given zhiwei listens to its mailbox
      When lulu writes "知微,水开了。" to zhiwei
      Then zhiwei hears "知微,水开了。"
      And the message is on record as delivered

    Scenario: An agent that was asleep hears first what it missed
      Given lulu wrote "早上好" to zhiwei
      And lulu wrote "下午好" to zhiwei
      When 3 days pass
      And zhiwei listens to its mailbox
      And lulu writes "晚上好" to zhiwei
      Then zhiwei hears "早上好", "下午好", "晚上好"

    Scenario: A stream whose connection breaks goes on where it was
      Given zhiwei listens to its mailbox
      When lulu writes 30 messages to zhiwei, and the connection breaks after each 10 that zhiwei hears
      Then zhiwei hears each of them once, in the order they were written

    Scenario: A stream outlives a restart of the relay
      Given zhiwei listens to its mailbox
      And lulu wrote "Before the restart" to zhiwei
      And zhiwei hears "Before the restart"
      When the relay is restarted
      And lulu writes "重启之后" to zhiwei
      Then zhiwei hears "Before the restart", "重启之后"

    Scenario: One socket sends, receives and acknowledges
      Given lulu and zhiwei each have a socket to the relay
      When lulu sends "借我一把伞,好吗?" to zhiwei over its socket
      Then zhiwei gets "借我一把伞,好吗?" over its socket
      When zhiwei acknowledges it over its socket
      Then zhiwei has 0 messages

    Scenario: A task is followed to its end
      Given lulu asked zhiwei "画一张成都的地图"
      And lulu follows the task
      When worker anna of zhiwei took the message
      And anna finishes with "画好了"
      Then lulu sees message.accepted, message.leased, message.acknowledged, task.completed and then the end

  Rule: A stream ends with the key that opened it

    Scenario: A key that is revoked ends the stream
      Given a relay that asks for keys
      And the agents lulu@laptop, zhiwei@studio and kames@desk with their own keys
      And lulu wrote "你听得见吗?" to zhiwei with its own key
      And zhiwei listens to its mailbox with its own key
      And zhiwei hears "你听得见吗?"
      When the operator revokes zhiwei's key
      And lulu wrote "Only for you, 知微" to zhiwei with its own key
      Then zhiwei's stream has ended, because the relay does not know it any more
      And zhiwei has heard nothing but "你听得见吗?"

  Rule: An agent that has an address is called there

    Background:
      Given a relay that may call servers on this machine
      And the agents lulu@laptop and zhiwei@studio
      And zhiwei's server, which is called when there is a message

    Scenario: A message is pushed, with a signature that only the relay can make
      When lulu writes "知微,你的包裹到了。" to zhiwei
      Then zhiwei's server gets "知微,你的包裹到了。"
      And its signature is right, and for any other secret or message it is wrong
      And the message is on record as delivered
      And zhiwei has 1 message

    Scenario: An agent may be told that there is a message, and read it itself
      Given zhiwei wants notices only
      When lulu writes "密码是 1234" to zhiwei about "有事找你"
      Then zhiwei's server is told of a message from lulu@laptop about "有事找你", and not what is in it

    Scenario: A server that fails is called again
      Given zhiwei's server answers 503, 204
      When lulu writes "第二次才听见" to zhiwei
      Then zhiwei's server gets "第二次才听见" 2 times, under the same id
      And the attempts were answered 503, 204

    Scenario: When all attempts are used up, the receipts say so and the message stays
      Given zhiwei's server answers 500
      When lulu writes "有人在吗?" to zhiwei
      And all attempts are used up
      Then the message's receipts are accepted, push_failed
      And the attempts were answered 500, 500
      And zhiwei has 1 message

    Scenario: A server that is gone for good is called no more
      Given zhiwei's server answers 410
      When lulu writes "最后一封" to zhiwei
      Then zhiwei's address is switched off, because it is gone
      And zhiwei has 1 message

    Scenario: After an outage the message is pushed again
      Given zhiwei's server answers 503
      And lulu wrote "第一封" to zhiwei
      And lulu wrote "第二封" to zhiwei
      And all attempts are used up
      When zhiwei's server answers 204
      And zhiwei asks for what came in the last 2 hours once more
      Then zhiwei's server gets "第一封", "第二封"

  Rule: What only the relay can reach, no caller reaches through it

    Scenario: An address inside is refused
      Given a relay
      When zhiwei@studio tries to be called at one of these
        | http://127.0.0.1:8080/             |
        | http://169.254.169.254/latest/     |
        | http://[::ffff:10.0.0.1]/          |
        | http://2130706433/                 |
        | http://localhost/                  |
        | file:///etc/passwd                 |
      Then the relay refuses each of them

  Rule: A sender without a key may sign what it sends

    Scenario: A signed message is accepted once
      Given a relay
      And the agents lulu@laptop and zhiwei@studio
      And a program that signs for lulu
      When the program posts "构建完成,全部通过" to zhiwei
      And zhiwei reads its messages
      Then it finds "构建完成,全部通过" from lulu@laptop
      When a sender posts the same once more
      Then the relay refuses, because it was posted before
      And zhiwei has 1 message
